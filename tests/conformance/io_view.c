/* Views: what part of the file a rank sees, in which units it counts, and where its accesses go (MPI-5 section 14.3).
 *
 * The named cases say where each element must lie. The random ones compare with a model: a view is the list of the
 * places of its elements in one tile, which repeats by the extent of the filetype.
 */
#include "io.h"

enum { MOST = 64 };

static void defaults(void)
{
    MPI_File file = io_new("defaults");
    MPI_Offset disp = -1;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING] = "";
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
    CHECK_INT(disp, 0);
    CHECK(etype == MPI_BYTE);
    CHECK(filetype == MPI_BYTE);
    CHECK_STR(datarep, "native");
    OK(MPI_File_close(&file));
}

/* Ranks take turns in blocks of 3 integers, behind a header of 10 bytes. */
static void interleaved(void)
{
    enum { ROUNDS = 40 };
    int out[3 * ROUNDS], in[3 * ROUNDS];
    MPI_File file = io_new("interleaved");
    MPI_Datatype block, filetype, etype, seen;
    MPI_Status status;
    MPI_Offset at = -1, disp = -1;
    char datarep[MPI_MAX_DATAREP_STRING] = "";
    OK(MPI_Type_contiguous(3, MPI_INT, &block));
    OK(MPI_Type_create_resized(block, 0, 12 * (MPI_Aint)lt_size, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_seek(file, 77, MPI_SEEK_SET));
    OK(MPI_File_set_view(file, 10 + 12 * (MPI_Offset)lt_rank, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&filetype)); /* the file has its own */
    OK(MPI_Type_free(&block));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    for (int i = 0; i < 3 * ROUNDS; i++)
        out[i] = lt_rank * 1000 + i;
    OK(MPI_File_write(file, out, 5, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 5);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 5);
    OK(MPI_File_get_byte_offset(file, at, &disp));
    CHECK_INT(disp, 10 + 12 * lt_rank + 12 * lt_size + 8);
    OK(MPI_File_write_all(file, out + 5, 3 * ROUNDS - 5, MPI_INT, &status));
    OK(MPI_File_read_at(file, 7, in, 50, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 50);
    CHECK_BYTES(in, out + 7, 200);
    OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
    OK(MPI_File_read(file, in, 2, MPI_INT, &status));
    CHECK_BYTES(in, out + 3 * ROUNDS - 2, 8);
    OK(MPI_File_get_view(file, &disp, &etype, &seen, datarep));
    CHECK_INT(disp, 10 + 12 * lt_rank);
    CHECK(etype == MPI_INT);
    OK(MPI_Type_free(&seen));
    OK(MPI_File_close(&file));
    int *all = lt_alloc(sizeof out * (size_t)lt_size);
    for (int i = 0; i < 3 * ROUNDS * lt_size; i++)
        all[i] = i / 3 % lt_size * 1000 + i / (3 * lt_size) * 3 + i % 3;
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0) {
        CHECK_INT(io_size(io_path("interleaved")), 10 + (long long)sizeof out * lt_size);
        unsigned char *bytes = io_look(io_path("interleaved"), 10, sizeof out * (size_t)lt_size);
        CHECK_BYTES(bytes, all, sizeof out * (size_t)lt_size);
        free(bytes);
    }
    free(all);
}

/* What lies in the holes of a view keeps its value. */
static void holes(void)
{
    enum { TILES = 200, TILE = 16 };
    static char before[TILES * TILE], expected[TILES * TILE], out[TILES * 6];
    int lengths[] = {2, 3, 1}, places[] = {1, 5, 12};
    MPI_Datatype pieces, filetype;
    memset(before, '.', sizeof before);
    memset(out, 'a' + lt_rank, sizeof out);
    io_make(io_path("holes"), before, sizeof before);
    OK(MPI_Type_indexed(3, lengths, places, MPI_CHAR, &pieces));
    OK(MPI_Type_create_resized(pieces, 0, TILE, &filetype));
    OK(MPI_Type_commit(&filetype));
    MPI_File file = io_open(WORLD, "holes", MPI_MODE_RDWR);
    OK(MPI_File_set_view(file, 0, MPI_CHAR, filetype, "native", MPI_INFO_NULL));
    if (lt_rank == lt_size - 1)
        OK(MPI_File_write(file, out, sizeof out, MPI_CHAR, NO_STATUS));
    OK(MPI_File_close(&file));
    memcpy(expected, before, sizeof before);
    for (int t = 0; t < TILES; t++)
        for (int p = 0; p < 3; p++)
            memset(expected + t * TILE + places[p], 'a' + lt_size - 1, (size_t)lengths[p]);
    CHECK_FILE(io_path("holes"), expected, sizeof expected);
    OK(MPI_Type_free(&pieces));
    OK(MPI_Type_free(&filetype));
}

/* Blocks of rows and columns of an array, by subarray and by darray; each rank reads what a different rank has written.
 */
static void blocks_of_arrays(void)
{
    int grid[2] = {0, 0}, wrong = 0;
    OK(MPI_Dims_create(lt_size, 2, grid));
    int rows = grid[0] * 7, columns = grid[1] * 11;
    int sizes[] = {rows, columns}, parts[] = {7, 11}, starts[] = {lt_rank / grid[1] * 7, lt_rank % grid[1] * 11};
    int block[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 11};
    MPI_Datatype sub, dist, inner;
    /* In memory the block has a border of 2 on each side. */
    int memory_sizes[] = {11, 15}, memory_starts[] = {2, 2};
    int out[11][15], in[11][15];
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &sub));
    OK(MPI_Type_create_darray(lt_size, lt_rank, 2, sizes, block, arguments, grid, MPI_ORDER_C, MPI_INT, &dist));
    OK(MPI_Type_create_subarray(2, memory_sizes, parts, memory_starts, MPI_ORDER_C, MPI_INT, &inner));
    OK(MPI_Type_commit(&sub));
    OK(MPI_Type_commit(&dist));
    OK(MPI_Type_commit(&inner));
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 15; j++) {
            out[i][j] = (starts[0] + i - 2) * columns + starts[1] + j - 2;
            in[i][j] = -5;
        }
    MPI_File file = io_new("array");
    OK(MPI_File_set_view(file, 0, MPI_INT, sub, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, 1, inner, NO_STATUS));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_set_view(file, 0, MPI_INT, dist, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, in, 1, inner, NO_STATUS));
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 15; j++) {
            int inside = i >= 2 && i < 9 && j >= 2 && j < 13;
            wrong += in[i][j] != (inside ? out[i][j] : -5);
        }
    CHECK_INT(wrong, 0);
    OK(MPI_File_close(&file));
    int *all = lt_alloc(sizeof(int) * (size_t)(rows * columns));
    for (int i = 0; i < rows * columns; i++)
        all[i] = i;
    CHECK_FILE(io_path("array"), all, sizeof(int) * (size_t)(rows * columns));
    free(all);
    OK(MPI_Type_free(&sub));
    OK(MPI_Type_free(&dist));
    OK(MPI_Type_free(&inner));
}

/* A cyclic distribution: element i belongs to rank (i / 2) modulo the number of ranks. */
static void cyclic(void)
{
    int n = 2 * lt_size * 13 + 1, distribution = MPI_DISTRIBUTE_CYCLIC, argument = 2, mine = 0, bytes;
    short *all = lt_alloc(sizeof(short) * (size_t)n), *own = lt_alloc(sizeof(short) * (size_t)n);
    MPI_Datatype dist;
    for (int i = 0; i < n; i++) {
        all[i] = (short)(3 * i);
        if (i / 2 % lt_size == lt_rank)
            own[mine++] = all[i];
    }
    OK(MPI_Type_create_darray(lt_size, lt_rank, 1, &n, &distribution, &argument, &lt_size, MPI_ORDER_C, MPI_SHORT,
                              &dist));
    OK(MPI_Type_commit(&dist));
    OK(MPI_Type_size(dist, &bytes));
    CHECK_INT(bytes, mine * 2);
    MPI_File file = io_new("cyclic");
    OK(MPI_File_set_view(file, 0, MPI_SHORT, dist, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, own, mine, MPI_SHORT, NO_STATUS));
    OK(MPI_File_close(&file));
    CHECK_FILE(io_path("cyclic"), all, sizeof(short) * (size_t)n);
    OK(MPI_Type_free(&dist));
    free(all);
    free(own);
}

/* A view that is changed counts from its own displacement, and MPI_SEEK_END from the end of the file in its units. */
static void changing_views(void)
{
    int numbers[40], in[40];
    MPI_Datatype pairs;
    MPI_Offset at = -1;
    MPI_Status status;
    for (int i = 0; i < 40; i++)
        numbers[i] = i;
    io_make(io_path("changing"), numbers, sizeof numbers);
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pairs)); /* elements 0 and 2 of 3 */
    OK(MPI_Type_commit(&pairs));
    MPI_File file = io_open(WORLD, "changing", MPI_MODE_RDONLY);
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read(file, in, 1, MPI_INT, NO_STATUS));
    CHECK_INT(in[0], 2);
    OK(MPI_File_seek(file, -3, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 35);
    OK(MPI_File_read(file, in, 9, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 3);
    CHECK_INT(in[0], 37);
    OK(MPI_File_set_view(file, 4, MPI_INT, pairs, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_File_read_at(file, 3, in, 3, MPI_INT, &status)); /* 1 3, 4 6, 7 9 */
    CHECK_INT(in[0], 6);
    CHECK_INT(in[1], 7);
    CHECK_INT(in[2], 9);
    /* 39 elements are visible: 13 tiles. */
    OK(MPI_File_read_at(file, 20, in, 20, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 6);
    CHECK_INT(in[5], 39);
    OK(MPI_File_read_at(file, 26, in, 20, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, 0);
    OK(MPI_File_get_size(file, &at)); /* in bytes, whatever the view */
    CHECK_INT(at, sizeof numbers);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&pairs));
}

/* Each rank its own view of one file: its own etype too, of the same size everywhere. */
static void etypes(void)
{
    struct {
        double x;
        int n;
    } out[30], in[30];
    MPI_Datatype both, etype;
    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    MPI_Offset at = -1;
    MPI_Status status;
    OK(MPI_Type_create_struct(2, lengths, places, types, &both));
    OK(MPI_Type_create_resized(both, 0, sizeof *out, &etype));
    OK(MPI_Type_commit(&etype));
    memset(out, 0, sizeof out);
    memset(in, 0, sizeof in);
    for (int i = 0; i < 30; i++) {
        out[i].x = lt_rank + i / 100.0;
        out[i].n = i;
    }
    MPI_File file = io_new("etypes");
    OK(MPI_File_set_view(file, (MPI_Offset)sizeof out * lt_rank, etype, etype, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 10, out + 10, 20, etype, &status));
    CHECK_COUNT(&status, etype, 20);
    OK(MPI_File_write_at(file, 0, out, 10, etype, &status));
    OK(MPI_File_get_byte_offset(file, 10, &at));
    CHECK_INT(at, 10 * (long long)sizeof *out + (long long)sizeof out * lt_rank);
    OK(MPI_File_seek(file, 7, MPI_SEEK_SET));
    OK(MPI_File_read(file, in, 23, etype, &status));
    CHECK_COUNT(&status, etype, 23);
    for (int i = 0; i < 23; i++)
        CHECK(in[i].x == out[i + 7].x && in[i].n == out[i + 7].n);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 30);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&both));
    OK(MPI_Type_free(&etype));
}

/* The repetition of a filetype may overlap it, as of a structure of a header and an array behind it, whose extent is
 * that of the array (section 5.1.6): what is accessed does not reach so far. */
static void short_extents(void)
{
    enum { HEADER = 512, N = 10 };
    int sizes[] = {2, N * lt_size}, parts[] = {2, N}, starts[] = {0, N * lt_rank}, blocks[] = {lt_rank ? 0 : HEADER, 1};
    MPI_Aint places[] = {0, HEADER};
    MPI_Datatype types[] = {MPI_BYTE, MPI_DATATYPE_NULL}, both;
    char out[HEADER + 2 * N * sizeof(int)], in[sizeof out];
    MPI_Status status;
    size_t from = lt_rank ? HEADER : 0, n = sizeof out - from;
    int count = (int)n;
    lt_fill(out, HEADER, 7);
    for (int i = 0; i < 2 * N; i++) {
        int number = i / N * N * lt_size + N * lt_rank + i % N;
        memcpy(out + HEADER + 4 * i, &number, 4);
    }
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &types[1]));
    OK(MPI_Type_create_struct(2, blocks, places, types, &both));
    OK(MPI_Type_commit(&both));
    MPI_File file = io_new("short");
    OK(MPI_File_set_view(file, 0, MPI_BYTE, both, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out + from, count, MPI_BYTE, &status));
    CHECK_COUNT(&status, MPI_BYTE, count);
    io_settle(file);
    OK(MPI_File_read_at_all(file, 0, in, count, MPI_BYTE, &status));
    CHECK_COUNT(&status, MPI_BYTE, count);
    CHECK_BYTES(in, out + from, n);
    OK(MPI_File_close(&file));
    size_t all = HEADER + 2 * N * sizeof(int) * (size_t)lt_size;
    char *expected = lt_alloc(all);
    lt_fill(expected, HEADER, 7);
    for (int i = 0; i < 2 * N * lt_size; i++)
        memcpy(expected + HEADER + 4 * i, &i, 4);
    CHECK_FILE(io_path("short"), expected, all);
    free(expected);
    OK(MPI_Type_free(&types[1]));
    OK(MPI_Type_free(&both));
}

typedef struct {
    int n, lengths[MOST], places[MOST]; /* in units */
    int units, extent;                  /* units of data in a tile, units from one tile to the next */
    int unit;                           /* bytes */
    MPI_Offset disp;
} tile;

static tile random_tile(void)
{
    tile t = {.n = 1 + (int)draw(12), .unit = (int[]){1, 2, 4, 8, 12}[draw(5)], .disp = draw(3) ? draw(5000) : 0};
    int at = 0;
    for (int i = 0; i < t.n; i++) {
        at += i ? 1 + (int)draw(draw(4) ? 6 : 200) : (int)draw(4);
        t.places[i] = at;
        t.lengths[i] = 1 + (int)draw(draw(4) ? 5 : 300);
        at += t.lengths[i];
        t.units += t.lengths[i];
    }
    t.extent = at + (int)draw(5);
    return t;
}

static MPI_Datatype etype_of(const tile *t)
{
    MPI_Datatype type;
    OK(MPI_Type_contiguous(t->unit, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static MPI_Datatype filetype_of(const tile *t, MPI_Datatype etype)
{
    MPI_Datatype pieces, type;
    OK(MPI_Type_indexed(t->n, t->lengths, t->places, etype, &pieces));
    OK(MPI_Type_create_resized(pieces, 0, (MPI_Aint)t->extent * t->unit, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&pieces));
    return type;
}

/* The place in the file of byte b of the view. */
static long long place(const tile *t, long long b)
{
    long long unit = b / t->unit, within = unit % t->units, at = t->disp + unit / t->units * t->extent * t->unit;
    int piece = 0;
    while (within >= t->lengths[piece])
        within -= t->lengths[piece++];
    return at + (t->places[piece] + within) * t->unit + b % t->unit;
}

enum { FILE_BYTES = 400000 };
static unsigned char model[FILE_BYTES], buffer[2 * FILE_BYTES], in[2 * FILE_BYTES];

/* A write and a read at random places of the view, with memory that has gaps in half of the cases. */
static void one_access(MPI_File file, const tile *t, MPI_Datatype etype)
{
    MPI_Datatype wide, memory = etype;
    MPI_Status status;
    int gap = (int)draw(2), n = 1 + (int)draw(draw(2) ? 40 : 3000), from = (int)draw(2000), step = t->unit * (1 + gap);
    while (n > 1 && place(t, (long long)(from + n) * t->unit) >= FILE_BYTES)
        n /= 2;
    if (place(t, (long long)(from + n) * t->unit) >= FILE_BYTES)
        return;
    OK(MPI_Type_create_resized(etype, 0, step, &wide));
    OK(MPI_Type_commit(&wide));
    if (gap)
        memory = wide;
    for (int i = 0; i < n * step; i++)
        buffer[i] = (unsigned char)draw(256);
    if (draw(2)) {
        OK(MPI_File_write_at(file, from, buffer, n, memory, &status));
    } else {
        OK(MPI_File_seek(file, from, MPI_SEEK_SET));
        OK(MPI_File_write(file, buffer, n, memory, &status));
    }
    CHECK_COUNT(&status, memory, n);
    for (int i = 0; i < n; i++)
        for (int b = 0; b < t->unit; b++)
            model[place(t, (long long)(from + i) * t->unit + b)] = buffer[i * step + b];
    memset(in, 0x55, sizeof in);
    int first = (int)draw((unsigned)n), count = 1 + (int)draw((unsigned)(n - first));
    OK(MPI_File_read_at(file, from + first, in, count, memory, &status));
    CHECK_COUNT(&status, memory, count);
    for (int i = 0; i < count * step; i++) {
        int expected = i % step < t->unit ? buffer[first * step + i] : 0x55;
        if (in[i] != expected) {
            CHECK_INT(in[i], expected);
            break;
        }
    }
    OK(MPI_Type_free(&wide));
}

static void random_views(void)
{
    char name[30];
    snprintf(name, sizeof name, "random-%d", lt_rank);
    for (int seed = 0; seed < 60 && lt_failures == 0; seed++) {
        io_state = (uint64_t)(seed * 1000 + lt_rank);
        for (int i = 0; i < FILE_BYTES; i++)
            model[i] = (unsigned char)(i % 251);
        int fd = open(io_path(name), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        CHECK(write(fd, model, FILE_BYTES) == FILE_BYTES);
        close(fd);
        MPI_File file = io_open(MPI_COMM_SELF, name, MPI_MODE_RDWR);
        for (int view = 0; view < 3; view++) {
            tile t = random_tile();
            MPI_Datatype etype = etype_of(&t), filetype = filetype_of(&t, etype);
            OK(MPI_File_set_view(file, t.disp, etype, filetype, "native", MPI_INFO_NULL));
            MPI_Offset at = -1;
            unsigned k = draw(500);
            OK(MPI_File_get_byte_offset(file, k, &at));
            CHECK_INT(at, place(&t, (long long)k * t.unit));
            for (int access = 0; access < 6; access++)
                one_access(file, &t, etype);
            OK(MPI_Type_free(&etype));
            OK(MPI_Type_free(&filetype));
        }
        OK(MPI_File_close(&file));
        unsigned char *bytes = io_look(io_path(name), 0, FILE_BYTES);
        if (!CHECK_BYTES(bytes, model, FILE_BYTES))
            printf("rank %d: seed %d\n", lt_rank, seed);
        CHECK_INT(io_size(io_path(name)), FILE_BYTES);
        free(bytes);
    }
}

IO_MAIN("io_view", TEST(defaults), TEST(interleaved), TEST(holes), TEST(blocks_of_arrays), TEST(cyclic),
        TEST(changing_views), TEST(etypes), TEST(short_extents), TEST(random_views))
