/* Data representations: native, internal, external32 byte for byte, and those of the program (MPI-5 section 14.5). */
#include "io.h"

static const int64_t BIG = 0x0102030405060708;

static void same_bytes_as_memory(void)
{
    static const char *const names[] = {"native", "internal"};
    double out[20], in[20];
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING];
    for (int i = 0; i < 20; i++)
        out[i] = lt_rank + i / 3.0;
    for (int k = 0; k < 2; k++) {
        MPI_File file = io_new(names[k]);
        OK(MPI_File_set_view(file, (MPI_Offset)sizeof out * lt_rank, MPI_DOUBLE, MPI_DOUBLE, names[k], MPI_INFO_NULL));
        OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
        CHECK_STR(name, names[k]);
        OK(MPI_File_write_all(file, out, 20, MPI_DOUBLE, NO_STATUS));
        OK(MPI_File_read_at(file, 0, in, 20, MPI_DOUBLE, NO_STATUS));
        CHECK_BYTES(in, out, sizeof out);
        OK(MPI_File_close(&file));
    }
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0) {
        unsigned char *bytes = io_look(io_path("native"), 0, sizeof out);
        CHECK_BYTES(bytes, out, sizeof out);
        free(bytes);
    }
}

static void external32_bytes(void)
{
    static const unsigned char expected[] = {
        1,    2,    3,    4,                            /* an int */
        0xff, 0xfe,                                     /* a short, -2 */
        0x3f, 0xf8, 0,    0,    0,    0,    0,    0,    /* a double, 1.5 */
        0xc0, 0x40, 0,    0,                            /* a float, -3 */
        'x',                                            /* a character */
        1,    2,    3,    4,    5,    6,    7,    8,    /* 64 bits */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb, /* MPI_Aint, -5 */
    };
    int i = 0x01020304;
    short s = -2;
    double d = 1.5;
    float f = -3;
    char c = 'x';
    int64_t l = BIG;
    MPI_Aint a = -5;
    const void *const values[] = {&i, &s, &d, &f, &c, &l, &a};
    const MPI_Datatype types[] = {MPI_INT, MPI_SHORT, MPI_DOUBLE, MPI_FLOAT, MPI_CHAR, MPI_INT64_T, MPI_AINT};
    static const int sizes[] = {4, 2, 8, 4, 1, 8, 8};
    MPI_Status status;
    MPI_File file = io_new("external32");
    MPI_Offset at = 0;
    for (int k = 0; k < 7; at += sizes[k++]) {
        char back[16] = "";
        MPI_Aint extent = -1;
        OK(MPI_File_set_view(file, at, types[k], types[k], "external32", MPI_INFO_NULL));
        if (lt_rank == 0) {
            OK(MPI_File_write(file, values[k], 1, types[k], &status));
            CHECK_COUNT(&status, types[k], 1);
            OK(MPI_File_read_at(file, 0, back, 1, types[k], &status));
            CHECK_BYTES(back, values[k], (size_t)sizes[k]);
        }
        OK(MPI_File_get_type_extent(file, types[k], &extent));
        CHECK_INT(extent, sizes[k]);
    }
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("external32"), expected, sizeof expected);
}

/* Types whose size in the file is not that in memory: positions count in the file's. */
static void external32_sizes(void)
{
    long double x[4] = {1.25L, -2.5L, 1e300L, 0.0L}, y[4] = {9, 9, 9, 9};
    long out[3] = {1, -2, 3}, in[3] = {0, 0, 0};
    MPI_Aint extent = -1, memory;
    MPI_Offset at = -1;
    MPI_Count packed = -1;
    MPI_File file = io_new("sizes");
    OK(MPI_File_set_view(file, 64 * lt_rank, MPI_LONG_DOUBLE, MPI_LONG_DOUBLE, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG_DOUBLE, &extent));
    CHECK_INT(extent, 16);
    OK(MPI_File_write_all(file, x, 4, MPI_LONG_DOUBLE, NO_STATUS));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 4);
    OK(MPI_File_get_byte_offset(file, 3, &at));
    CHECK_INT(at, 48 + 64 * lt_rank);
    OK(MPI_File_read_at_all(file, 0, y, 4, MPI_LONG_DOUBLE, NO_STATUS));
    for (int i = 0; i < 4; i++)
        CHECK(x[i] == y[i]);
    OK(MPI_File_close(&file));
    CHECK_INT(io_size(io_path("sizes")), 64 * lt_size);
    /* long: what MPI_Pack_external makes of it. */
    OK(MPI_Pack_external_size("external32", 1, MPI_LONG, &memory));
    packed = memory;
    file = io_new("longs");
    OK(MPI_File_set_view(file, 3 * packed * lt_rank, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    OK(MPI_File_write(file, out, 3, MPI_LONG, NO_STATUS));
    OK(MPI_File_read_at(file, 1, in, 2, MPI_LONG, NO_STATUS));
    CHECK(in[0] == -2 && in[1] == 3);
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    CHECK_INT(io_size(io_path("longs")), 3 * packed * lt_size);
}

/* Views with holes, memory with gaps, collective and non-blocking, in big-endian. */
static void external32_in_pieces(void)
{
    enum { N = 3000 };
    static int out[2 * N], in[2 * N];
    MPI_Datatype turns, gaps;
    MPI_Request request;
    MPI_Status status;
    MPI_File file = io_new("pieces");
    OK(MPI_Type_create_resized(MPI_INT, 0, 4 * (MPI_Aint)lt_size, &turns));
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &gaps));
    OK(MPI_Type_commit(&turns));
    OK(MPI_Type_commit(&gaps));
    for (int i = 0; i < N; i++) {
        out[2 * i] = i * lt_size + lt_rank;
        out[2 * i + 1] = in[2 * i + 1] = -1;
    }
    OK(MPI_File_set_view(file, 4 * lt_rank, MPI_INT, turns, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, N, gaps, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_iread_at(file, 0, in, N, gaps, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_close(&file));
    unsigned char *expected = lt_alloc(4 * N * (size_t)lt_size);
    for (int i = 0; i < N * lt_size; i++)
        for (int b = 0; b < 4; b++)
            expected[4 * i + b] = (unsigned char)(i >> (24 - 8 * b));
    CHECK_FILE(io_path("pieces"), expected, 4 * N * (size_t)lt_size);
    free(expected);
    OK(MPI_Type_free(&turns));
    OK(MPI_Type_free(&gaps));
}

/* A representation of the program: an int takes 8 bytes, its own and their complement. */
static int state_of_the_program, wrong_calls;

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    MPI_Aint lb, memory;
    wrong_calls += state != &state_of_the_program;
    MPI_Type_get_extent(type, &lb, &memory);
    *extent = 2 * memory;
    return MPI_SUCCESS;
}

static int encode(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    wrong_calls += state != &state_of_the_program || type != MPI_INT;
    for (int i = 0; i < count; i++) {
        int value = ((int *)user)[position + i];
        int pair[2] = {value, ~value};
        memcpy((char *)file + 8 * i, pair, 8);
    }
    return MPI_SUCCESS;
}

static int decode(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    wrong_calls += state != &state_of_the_program || type != MPI_INT;
    for (int i = 0; i < count; i++) {
        int pair[2];
        memcpy(pair, (char *)file + 8 * i, 8);
        if (pair[0] != ~pair[1])
            return MPI_ERR_CONVERSION;
        ((int *)user)[position + i] = pair[0];
    }
    return MPI_SUCCESS;
}

static void representation_of_the_program(void)
{
    enum { N = 5000 };
    static int out[N], in[N];
    MPI_Aint extent = -1;
    MPI_Offset at = -1;
    MPI_Request request;
    MPI_Status status;
    char name[MPI_MAX_DATAREP_STRING];
    for (int i = 0; i < N; i++)
        out[i] = lt_rank * 100000 + i;
    OK(MPI_Register_datarep("doubled", decode, encode, extent_of, &state_of_the_program));
    MPI_File file = io_new("doubled");
    OK(MPI_File_set_view(file, 8 * N * (MPI_Offset)lt_rank, MPI_INT, MPI_INT, "doubled", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &at, &(MPI_Datatype){0}, &(MPI_Datatype){0}, name));
    CHECK_STR(name, "doubled");
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK_INT(extent, 8);
    OK(MPI_File_write_all(file, out, N - 1000, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N - 1000);
    OK(MPI_File_iwrite(file, out + N - 1000, 1000, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_INT, 1000);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, N);
    OK(MPI_File_get_byte_offset(file, 3, &at));
    CHECK_INT(at, 8 * N * lt_rank + 24);
    OK(MPI_File_read_at_all(file, 0, in, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_BYTES(in, out, sizeof out);
    memset(in, 0, sizeof in);
    OK(MPI_File_iread_at(file, 10, in, N - 10, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_BYTES(in, out + 10, sizeof out - 40);
    CHECK_INT(wrong_calls, 0);
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    CHECK_INT(io_size(io_path("doubled")), 8 * N * lt_size);
    if (lt_rank == 0) {
        int *pairs = (int *)io_look(io_path("doubled"), 0, 16);
        CHECK(pairs[0] == 0 && pairs[1] == -1 && pairs[2] == 1 && pairs[3] == -2);
        free(pairs);
    }
}

/* What a conversion function reports reaches the caller, and the file can still be used. */
static void failing_conversion(void)
{
    int in[4];
    MPI_Status status;
    io_make(io_path("damaged"), "not what was written by encode()", 32);
    MPI_File file = io_open(WORLD, "damaged", MPI_MODE_RDONLY);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "doubled", MPI_INFO_NULL));
    FAILS(MPI_ERR_CONVERSION, MPI_File_read_at(file, 0, in, 4, MPI_INT, &status));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, in, 8, MPI_BYTE, &status));
    CHECK_BYTES(in, "not what", 8);
    OK(MPI_File_close(&file));
}

static int extent_in_memory(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    MPI_Aint lb;
    (void)state;
    return MPI_Type_get_extent(type, &lb, extent);
}

/* Without conversion functions data is as in memory. */
static void no_conversion(void)
{
    int out[5] = {lt_rank, 1, 2, 3, 4}, in[5];
    OK(MPI_Register_datarep("as-it-is", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_in_memory, NULL));
    MPI_File file = io_new("as-it-is");
    OK(MPI_File_set_view(file, 20 * lt_rank, MPI_INT, MPI_INT, "as-it-is", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, out, 5, MPI_INT, NO_STATUS));
    OK(MPI_File_read_at_all(file, 0, in, 5, MPI_INT, NO_STATUS));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_close(&file));
}

static void names_of_representations(void)
{
    char name[2 * MPI_MAX_DATAREP_STRING];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("doubled", decode, encode, extent_of, NULL));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("native", decode, encode, extent_of, NULL));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("external32", decode, encode, extent_of, NULL));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("internal", decode, encode, extent_of, NULL));
    REFUSED(MPI_Register_datarep(name, decode, encode, extent_of, NULL));
}

IO_MAIN("io_datarep", TEST(same_bytes_as_memory), TEST(external32_bytes), TEST(external32_sizes),
        TEST(external32_in_pieces), TEST(representation_of_the_program), TEST(failing_conversion), TEST(no_conversion),
        TEST(names_of_representations))
