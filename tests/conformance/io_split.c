/* Split collective accesses: begin and end of every form, other calls between them, and combinations that are illegal
 * (MPI-5 section 14.4.5). */
#include "io.h"

enum { N = 3000 };
static int out[N], in[N];

static void numbers(int round)
{
    for (int i = 0; i < N; i++)
        out[i] = (lt_rank + 1) * 100000 + round * 10000 + i;
    memset(in, 0, sizeof in);
}

static MPI_File open_own_parts(const char *name)
{
    MPI_File file = io_new(name);
    OK(MPI_File_set_view(file, (MPI_Offset)sizeof out * lt_rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    return file;
}

static void all_forms(void)
{
    MPI_Status status;
    MPI_Offset at = -1;
    MPI_File file = open_own_parts("forms");
    numbers(1);
    OK(MPI_File_write_all_begin(file, out, N, MPI_INT));
    OK(MPI_File_write_all_end(file, out, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, N);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, in, N - 10, MPI_INT));
    OK(MPI_File_read_all_end(file, in, &status));
    CHECK_COUNT(&status, MPI_INT, N - 10);
    CHECK_BYTES(in, out, sizeof(int) * (N - 10));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, N - 10);
    numbers(2);
    OK(MPI_File_write_at_all_begin(file, 0, out, N, MPI_INT));
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_File_read_at_all_begin(file, 100, in, N - 100, MPI_INT));
    OK(MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE));
    CHECK_BYTES(in, out + 100, sizeof(int) * (N - 100));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, N - 10);
    OK(MPI_File_close(&file));
    file = io_new("forms-ordered");
    OK(MPI_File_write_ordered_begin(file, out, lt_rank + 1, MPI_INT));
    OK(MPI_File_write_ordered_end(file, out, &status));
    CHECK_COUNT(&status, MPI_INT, lt_rank + 1);
    io_settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    memset(in, 0, sizeof in);
    OK(MPI_File_read_ordered_begin(file, in, lt_rank + 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, in, &status));
    CHECK_COUNT(&status, MPI_INT, lt_rank + 1);
    CHECK_BYTES(in, out, sizeof(int) * (size_t)(lt_rank + 1));
    OK(MPI_File_close(&file));
}

/* Other calls between begin and end: computing, messages, collectives of the program, other files, independent accesses
 * to the same file. */
static void calls_between(void)
{
    MPI_File files[3];
    MPI_Status status;
    char name[20];
    int sum = 0, one = 1, extra = lt_rank, back = -1;
    numbers(3);
    for (int f = 0; f < 3; f++) {
        snprintf(name, sizeof name, "between-%d", f);
        files[f] = open_own_parts(name);
    }
    for (int f = 0; f < 3; f++)
        OK(MPI_File_write_all_begin(files[f], out, N, MPI_INT));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD));
    CHECK_INT(sum, lt_size);
    MPI_Offset beyond = (MPI_Offset)N * lt_size * 2 + lt_rank; /* in integers behind one's own displacement */
    OK(MPI_File_write_at(files[1], beyond, &extra, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_read_at(files[1], beyond, &back, 1, MPI_INT, NO_STATUS));
    CHECK_INT(back, extra);
    for (int f = 2; f >= 0; f--) {
        OK(MPI_File_write_all_end(files[f], out, &status));
        CHECK_COUNT(&status, MPI_INT, N);
    }
    for (int f = 0; f < 3; f++) {
        OK(MPI_File_read_at(files[f], 0, in, N, MPI_INT, &status));
        CHECK_BYTES(in, out, sizeof out);
        OK(MPI_File_close(&files[f]));
    }
}

/* Derived types that are freed between begin and end. */
static void freed_types(void)
{
    MPI_Datatype every_other;
    MPI_Status status;
    MPI_File file = open_own_parts("freed");
    numbers(4);
    OK(MPI_Type_vector(N / 2, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_File_write_at_all_begin(file, 0, out, 1, every_other));
    OK(MPI_Type_free(&every_other));
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK_COUNT(&status, MPI_INT, N / 2);
    OK(MPI_File_read_at(file, 0, in, N / 2, MPI_INT, NO_STATUS));
    int wrong = 0;
    for (int i = 0; i < N / 2; i++)
        wrong += in[i] != out[2 * i];
    CHECK_INT(wrong, 0);
    OK(MPI_File_close(&file));
}

static void illegal_combinations(void)
{
    MPI_Status status;
    MPI_Request request;
    MPI_File file = open_own_parts("illegal");
    numbers(5);
    /* An end without its begin. */
    REFUSED(MPI_File_write_all_end(file, out, &status));
    REFUSED(MPI_File_read_all_end(file, in, &status));
    REFUSED(MPI_File_write_ordered_end(file, out, &status));
    OK(MPI_Barrier(WORLD));
    /* One at a time for a file, and no other collective access meanwhile. */
    OK(MPI_File_write_at_all_begin(file, 0, out, N, MPI_INT));
    REFUSED(MPI_File_write_at_all_begin(file, 0, out, N, MPI_INT));
    REFUSED(MPI_File_read_all_begin(file, in, N, MPI_INT));
    REFUSED(MPI_File_write_ordered_begin(file, out, 1, MPI_INT));
    REFUSED(MPI_File_write_all(file, out, N, MPI_INT, &status));
    REFUSED(MPI_File_read_at_all(file, 0, in, N, MPI_INT, &status));
    REFUSED(MPI_File_read_ordered(file, in, N, MPI_INT, &status));
    REFUSED(MPI_File_iwrite_all(file, out, N, MPI_INT, &request));
    /* The end of another form. */
    REFUSED(MPI_File_write_all_end(file, out, &status));
    REFUSED(MPI_File_read_at_all_end(file, in, &status));
    REFUSED(MPI_File_write_ordered_end(file, out, &status));
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_write_at_all_end(file, out, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    OK(MPI_Barrier(WORLD));
    REFUSED(MPI_File_write_at_all_end(file, out, &status));
    OK(MPI_File_read_at_all(file, 0, in, N, MPI_INT, &status));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_close(&file));
}

/* A file cannot be closed in the middle; afterwards it can. */
static void closing_too_early(void)
{
    MPI_File file = open_own_parts("early");
    numbers(6);
    OK(MPI_File_write_all_begin(file, out, N, MPI_INT));
    REFUSED(MPI_File_close(&file));
    CHECK(file != MPI_FILE_NULL);
    OK(MPI_File_write_all_end(file, out, NO_STATUS));
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

IO_MAIN("io_split", TEST(all_forms), TEST(calls_between), TEST(freed_types), TEST(illegal_combinations),
        TEST(closing_too_early))
