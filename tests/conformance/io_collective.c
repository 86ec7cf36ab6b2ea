/* Collective accesses in every form, and independent ones of all ranks at once, against a model (MPI-5 sections 14.4.2
 * to 14.4.4).
 *
 * Every rank draws the same owners for the pieces of a file, and so knows what the whole file must be. No byte has two
 * writers, so the result is the same in whatever order they write: also where the pieces of several ranks share a block
 * of the file system. The variable IO_SEEDS says how many patterns are drawn.
 */
#include "io.h"

enum { MOST_PIECES = 3000, FILE_BYTES = 1 << 20 };

static int owner[MOST_PIECES], start[MOST_PIECES + 1], pieces, unit;
static unsigned char *whole, *own, *got;
static size_t own_bytes;

/* Cuts a part of the file into pieces and draws the owner of each: -1 is none. */
static void draw_pieces(int most)
{
    unit = (int[]){1, 4, 8}[draw(3)];
    pieces = 1 + (int)draw((unsigned)most);
    int at = (int)draw(3), mean = draw(4) ? 1 + (int)draw(100) : 1 + (int)draw(30000);
    for (int i = 0; i < pieces; i++) {
        start[i] = at;
        owner[i] = (int)draw((unsigned)lt_size + 1) - 1;
        at += 1 + (int)draw((unsigned)mean);
        if (at * unit > FILE_BYTES - 8)
            pieces = i + 1, at = start[i] + 1;
    }
    start[pieces] = at;
    for (int i = 0; i < pieces; i++) /* some ranks have nothing */
        if (owner[i] >= 0 && lt_size > 2 && owner[i] % 3 == 1 && mean % 2)
            owner[i] = 0;
}

/* The filetype with the pieces of a rank; a hole of one unit if it has none. */
static MPI_Datatype filetype_of(int rank, MPI_Datatype etype)
{
    static int lengths[MOST_PIECES], places[MOST_PIECES];
    int n = 0;
    MPI_Datatype type, resized;
    for (int i = 0; i < pieces; i++)
        if (owner[i] == rank) {
            places[n] = start[i];
            lengths[n++] = start[i + 1] - start[i];
        }
    if (n == 0) {
        OK(MPI_Type_dup(etype, &resized));
    } else {
        OK(MPI_Type_indexed(n, lengths, places, etype, &type));
        OK(MPI_Type_create_resized(type, 0, (MPI_Aint)start[pieces] * unit, &resized));
        OK(MPI_Type_free(&type));
    }
    OK(MPI_Type_commit(&resized));
    return resized;
}

/* Changes what the model has in the pieces of every rank, and collects what this rank must write. */
static void new_contents(uint64_t seed)
{
    own_bytes = 0;
    for (int i = 0; i < pieces; i++) {
        size_t n = (size_t)(start[i + 1] - start[i]) * (size_t)unit, at = (size_t)start[i] * (size_t)unit;
        if (owner[i] < 0)
            continue;
        for (size_t b = 0; b < n; b++)
            whole[at + b] = lt_byte(seed + (uint64_t)owner[i], at + b);
        if (owner[i] == lt_rank) {
            memcpy(own + own_bytes, whole + at, n);
            own_bytes += n;
        }
    }
}

/* The ways to read or write what the view shows, from its start on. */
static int put(MPI_File file, int form, const void *from, int n, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Status status;
    int code = MPI_SUCCESS;
    switch (form) {
    case 0: code = MPI_File_write_all(file, from, n, type, &status); break;
    case 1: code = MPI_File_write_at_all(file, 0, from, n, type, &status); break;
    case 2:
        code = MPI_File_iwrite_all(file, from, n, type, &request);
        OK(MPI_Wait(&request, &status));
        break;
    case 3:
        code = MPI_File_iwrite_at_all(file, 0, from, n, type, &request);
        OK(MPI_Wait(&request, &status));
        break;
    case 4:
        code = MPI_File_write_all_begin(file, from, n, type);
        OK(MPI_File_write_all_end(file, from, &status));
        break;
    case 5:
        code = MPI_File_write_at_all_begin(file, 0, from, n, type);
        OK(MPI_File_write_at_all_end(file, from, &status));
        break;
    case 6: code = MPI_File_write(file, from, n, type, &status); break;
    default: code = MPI_File_iwrite_at(file, 0, from, n, type, &request); OK(MPI_Wait(&request, &status));
    }
    CHECK_COUNT(&status, type, n);
    return code;
}

static int get(MPI_File file, int form, void *to, int n, MPI_Datatype type)
{
    MPI_Request request;
    MPI_Status status;
    int code = MPI_SUCCESS;
    switch (form) {
    case 0: code = MPI_File_read_all(file, to, n, type, &status); break;
    case 1: code = MPI_File_read_at_all(file, 0, to, n, type, &status); break;
    case 2:
        code = MPI_File_iread_all(file, to, n, type, &request);
        OK(MPI_Wait(&request, &status));
        break;
    case 3:
        code = MPI_File_iread_at_all(file, 0, to, n, type, &request);
        OK(MPI_Wait(&request, &status));
        break;
    case 4:
        code = MPI_File_read_all_begin(file, to, n, type);
        OK(MPI_File_read_all_end(file, to, &status));
        break;
    case 5:
        code = MPI_File_read_at_all_begin(file, 0, to, n, type);
        OK(MPI_File_read_at_all_end(file, to, &status));
        break;
    case 6: code = MPI_File_read(file, to, n, type, &status); break;
    default: code = MPI_File_iread_at(file, 0, to, n, type, &request); OK(MPI_Wait(&request, &status));
    }
    CHECK_COUNT(&status, type, n);
    return code;
}

static MPI_Info hints(int which)
{
    static const char *const sizes[] = {NULL, "4096", "65536", "1000"}, *const nodes[] = {NULL, "1", "2", "100"};
    MPI_Info info;
    OK(MPI_Info_create(&info));
    if (which % 4) {
        OK(MPI_Info_set(info, "cb_buffer_size", sizes[which % 4]));
        OK(MPI_Info_set(info, "ind_wr_buffer_size", sizes[which % 4]));
        OK(MPI_Info_set(info, "ind_rd_buffer_size", sizes[which % 4]));
    }
    if (which / 4 % 4)
        OK(MPI_Info_set(info, "cb_nodes", nodes[which / 4 % 4]));
    if (which / 16 % 2)
        OK(MPI_Info_set(info, "collective_buffering", which / 32 % 2 ? "true" : "false"));
    return info;
}

/* One view: all ranks write in one form and read in a different one. Memory has a gap behind each unit in some rounds.
 */
static void one_round(MPI_File file, uint64_t seed, int first_form, int n_forms)
{
    MPI_Datatype etype, filetype, wide, memory;
    draw_pieces((int[]){5, 100, MOST_PIECES}[draw(3)]);
    OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
    OK(MPI_Type_create_resized(etype, 0, 2 * unit, &wide));
    OK(MPI_Type_commit(&etype));
    OK(MPI_Type_commit(&wide));
    filetype = filetype_of(lt_rank, etype);
    new_contents(seed);
    MPI_Offset disp = 0;
    OK(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
    int n = (int)own_bytes / unit, gaps = (int)draw(2), write_form = first_form + (int)draw((unsigned)n_forms);
    int read_form = (int)draw(8), null = (int)draw(2);
    memory = gaps ? wide : etype;
    if (gaps) /* spread from the back */
        for (int i = n - 1; i >= 0; i--)
            memmove(own + 2 * i * unit, own + i * unit, (size_t)unit);
    OK(put(file, write_form, n || !null ? own : NULL, n, memory));
    io_settle(file);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    memset(got, 0x77, 2 * own_bytes + 1);
    OK(get(file, read_form, got, n, memory));
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int at = i * unit * (1 + gaps);
        wrong += memcmp(got + at, own + at, (size_t)unit) != 0;
        wrong += gaps && got[at + unit] != 0x77;
    }
    CHECK_INT(wrong, 0);
    OK(MPI_Barrier(WORLD)); /* the next round has other owners */
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&filetype));
}

static void random_pieces(const char *name, uint64_t seeds, int first_form, int n_forms)
{
    whole = calloc(1, FILE_BYTES);
    own = lt_alloc(2 * FILE_BYTES + 16);
    got = lt_alloc(2 * FILE_BYTES + 16);
    int failed = 0;
    const char *more = getenv("IO_SEEDS");
    seeds = more ? strtoull(more, NULL, 10) : seeds;
    for (uint64_t seed = 1; seed <= seeds && !failed; seed++) {
        MPI_File file;
        io_state = seed * 999;
        memset(whole, (int)seed, FILE_BYTES);
        io_make(io_path(name), whole, FILE_BYTES);
        MPI_Info info = hints((int)draw(64));
        OK(MPI_File_open(WORLD, io_path(name), MPI_MODE_RDWR, info, &file));
        OK(MPI_Info_free(&info));
        for (uint64_t round = 0; round < 4; round++)
            one_round(file, seed * 100 + round * 10, first_form, n_forms);
        OK(MPI_File_close(&file));
        CHECK_FILE(io_path(name), whole, FILE_BYTES);
        failed = lt_failures != 0;
        OK(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, WORLD));
        if (failed && lt_rank == 0)
            printf("seed %llu\n", (unsigned long long)seed);
    }
    free(whole);
    free(own);
    free(got);
}

static void collective_writers(void)
{
    random_pieces("collective", 25, 0, 6);
}

/* Pieces of all ranks lie side by side, and no rank waits: no write may undo another. */
static void independent_writers(void)
{
    random_pieces("independent", 25, 6, 2);
}

/* Single bytes in turns, again and again, without a barrier between. */
static void adjacent_bytes(void)
{
    enum { EACH = 4000 };
    char out[EACH];
    MPI_Datatype filetype;
    MPI_File file = io_new("adjacent");
    OK(MPI_Type_create_resized(MPI_CHAR, 0, lt_size, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, lt_rank, MPI_CHAR, filetype, "native", MPI_INFO_NULL));
    for (int round = 0; round < 20; round++) {
        memset(out, 'a' + round, sizeof out);
        OK(MPI_File_write_at(file, 0, out, EACH, MPI_CHAR, NO_STATUS));
    }
    OK(MPI_File_close(&file));
    char *expected = lt_alloc(EACH * (size_t)lt_size);
    memset(expected, 'a' + 19, EACH * (size_t)lt_size);
    CHECK_FILE(io_path("adjacent"), expected, EACH * (size_t)lt_size);
    free(expected);
    OK(MPI_Type_free(&filetype));
}

/* All read the same, and parts that overlap. */
static void everybody_reads(void)
{
    enum { N = 300000 };
    int *numbers = lt_alloc(N * sizeof(int)), *in = lt_alloc(N * sizeof(int)), wrong = 0;
    MPI_Status status;
    for (int i = 0; i < N; i++)
        numbers[i] = i * 3;
    io_make(io_path("read"), numbers, N * sizeof(int));
    MPI_File file = io_open(WORLD, "read", MPI_MODE_RDONLY);
    OK(MPI_File_read_all(file, in, N, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, N);
    CHECK_BYTES(in, numbers, N * sizeof(int));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 1000 * lt_rank, in, 200000, MPI_INT, &status));
    for (int i = 0; i < 200000; i++)
        wrong += in[i] != (i + 1000 * lt_rank) * 3;
    CHECK_INT(wrong, 0);
    /* One rank is at the end of the file, one beyond it, others read a lot. */
    int from = lt_rank % 3 == 0 ? N - 10 : lt_rank % 3 == 1 ? N + 5 : 0;
    OK(MPI_File_read_at_all(file, from, in, 1000, MPI_INT, &status));
    CHECK_COUNT(&status, MPI_INT, lt_rank % 3 == 0 ? 10 : lt_rank % 3 == 1 ? 0 : 1000);
    OK(MPI_File_close(&file));
    free(numbers);
    free(in);
}

/* A block of a three-dimensional array per rank. */
static void blocks_of_three_dimensions(void)
{
    enum { SIDE = 24 };
    int grid[3] = {0, 0, 0}, sizes[3], parts[3] = {SIDE, SIDE, SIDE}, starts[3], n = SIDE * SIDE * SIDE;
    MPI_Datatype block;
    OK(MPI_Dims_create(lt_size, 3, grid));
    int mine[3] = {lt_rank / (grid[1] * grid[2]), lt_rank / grid[2] % grid[1], lt_rank % grid[2]};
    for (int d = 0; d < 3; d++) {
        sizes[d] = grid[d] * SIDE;
        starts[d] = mine[d] * SIDE;
    }
    double *out = lt_alloc((size_t)n * sizeof *out), *in = lt_alloc((size_t)n * sizeof *in);
    for (int i = 0; i < n; i++) {
        long x = starts[0] + i / (SIDE * SIDE), y = starts[1] + i / SIDE % SIDE, z = starts[2] + i % SIDE;
        out[i] = (double)((x * sizes[1] + y) * sizes[2] + z);
    }
    OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &block));
    OK(MPI_Type_commit(&block));
    MPI_File file = io_new("cube");
    OK(MPI_File_set_view(file, 0, MPI_DOUBLE, block, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, n, MPI_DOUBLE, NO_STATUS));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all(file, in, n, MPI_DOUBLE, NO_STATUS));
    CHECK_BYTES(in, out, (size_t)n * sizeof *in);
    OK(MPI_File_close(&file));
    size_t all = (size_t)n * (size_t)lt_size;
    double *expected = lt_alloc(all * sizeof *expected);
    for (size_t i = 0; i < all; i++)
        expected[i] = (double)i;
    CHECK_FILE(io_path("cube"), expected, all * sizeof *expected);
    free(expected);
    free(out);
    free(in);
    OK(MPI_Type_free(&block));
}

/* Number of an element of an array, of which `step` says what is there. */
static int element(const int *sizes, const int *starts, const int *parts, int i, int step)
{
    int x = starts[0] + i / (parts[1] * parts[2]), y = starts[1] + i / parts[2] % parts[1],
        z = starts[2] + i % parts[2];
    return ((x * sizes[1] + y) * sizes[2] + z) ^ step << 24;
}

/* An array of some megabytes is written in blocks, step by step, and each rank reads the block of a neighbour. Its
 * memory has a gap behind each element in some steps, and some ranks leave theirs out. */
static void steps_of_a_large_array(void)
{
    int grid[2] = {0, 0}, sizes[3] = {5, 0, 0}, parts[3] = {5, 700, 300}, of_rank[2][3], n = 5 * 700 * 300;
    MPI_Datatype views[2], wide;
    OK(MPI_Dims_create(lt_size, 2, grid));
    int other = (lt_rank + 1) % lt_size;
    for (int d = 0; d < 2; d++) {
        sizes[d + 1] = grid[d] * parts[d + 1];
        of_rank[0][d + 1] = (d ? lt_rank % grid[1] : lt_rank / grid[1]) * parts[d + 1];
        of_rank[1][d + 1] = (d ? other % grid[1] : other / grid[1]) * parts[d + 1];
    }
    for (int i = 0; i < 2; i++) {
        of_rank[i][0] = 0;
        OK(MPI_Type_create_subarray(3, sizes, parts, of_rank[i], MPI_ORDER_C, MPI_INT, &views[i]));
        OK(MPI_Type_commit(&views[i]));
    }
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide));
    OK(MPI_Type_commit(&wide));
    int *out = lt_alloc((size_t)n * 2 * sizeof *out), *in = lt_alloc((size_t)n * sizeof *in);
    MPI_File file = io_new("steps");
    for (int step = 0; step < 6; step++) {
        int gaps = 1 + (step + lt_rank) % 2, writes = step == 0 || (lt_rank + step) % 4 != 0, wrong = 0;
        int theirs = step == 0 || (other + step) % 4 != 0 ? step : step - 1;
        for (int i = 0; i < n; i++)
            out[i * gaps] = element(sizes, of_rank[0], parts, i, step);
        OK(MPI_File_set_view(file, 64, MPI_INT, views[0], "native", MPI_INFO_NULL));
        OK(MPI_File_write_at_all(file, 0, out, writes ? n : 0, gaps == 2 ? wide : MPI_INT, NO_STATUS));
        io_settle(file);
        OK(MPI_File_set_view(file, 64, MPI_INT, views[1], "native", MPI_INFO_NULL));
        memset(in, 0xff, (size_t)n * sizeof *in);
        OK(MPI_File_read_at_all(file, 0, in, n, MPI_INT, NO_STATUS));
        for (int i = 0; i < n; i++)
            wrong += in[i] != element(sizes, of_rank[1], parts, i, theirs);
        CHECK_INT(wrong, 0);
    }
    OK(MPI_File_close(&file));
    free(out);
    free(in);
    OK(MPI_Type_free(&wide));
    for (int i = 0; i < 2; i++)
        OK(MPI_Type_free(&views[i]));
}

/* Columns of a matrix that is larger than a megabyte: written, cut off, read, written again; and written by ranks that
 * may not read. */
static void columns_of_a_file_that_is_cut_off(void)
{
    enum { ROWS = 4000, WIDTH = 90 };
    int n = ROWS * WIDTH, row = lt_size * WIDTH, wrong = 0, got = -1;
    int *out = lt_alloc((size_t)n * sizeof *out), *in = lt_alloc((size_t)n * sizeof *in);
    MPI_Datatype columns;
    MPI_Status status;
    OK(MPI_Type_vector(ROWS, WIDTH, row, MPI_INT, &columns));
    OK(MPI_Type_commit(&columns));
    MPI_Offset start = (MPI_Offset)lt_rank * WIDTH * 4, whole = (MPI_Offset)ROWS * row * 4;
    MPI_File file = io_new("columns");
    OK(MPI_File_set_view(file, start, MPI_INT, columns, "native", MPI_INFO_NULL));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++)
            out[i] = n * lt_rank + i + round;
        OK(MPI_File_write_at_all(file, 0, out, n, MPI_INT, NO_STATUS));
        MPI_Offset kept = round == 1 ? whole / 2 : whole;
        OK(MPI_File_set_size(file, kept));
        io_settle(file);
        memset(in, 0xff, (size_t)n * sizeof *in);
        OK(MPI_File_read_at_all(file, 0, in, n, MPI_INT, &status));
        OK(MPI_Get_count(&status, MPI_INT, &got));
        CHECK_INT(got, round == 1 ? n / 2 : n);
        for (int i = 0; i < n; i++)
            wrong += in[i] != (i < got ? out[i] : -1);
        CHECK_INT(wrong, 0);
    }
    OK(MPI_File_close(&file));
    OK(MPI_File_open(WORLD, io_path("columns"), MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, start, MPI_INT, columns, "native", MPI_INFO_NULL));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < n; i++)
            out[i] = -(n * lt_rank + i) - round;
        OK(MPI_File_write_at_all(file, 0, out, n, MPI_INT, NO_STATUS));
    }
    OK(MPI_File_close(&file));
    int *all = lt_alloc((size_t)whole);
    for (int i = 0; i < ROWS * row; i++)
        all[i] = -(n * (i % row / WIDTH) + i / row * WIDTH + i % WIDTH) - 1;
    CHECK_FILE(io_path("columns"), all, (size_t)whole);
    free(all);
    free(out);
    free(in);
    OK(MPI_Type_free(&columns));
}

/* Collective pointers: each rank's own one moves by what it has accessed. */
static void pointers_of_collective_accesses(void)
{
    int out[5], in[15];
    MPI_Offset at = -1;
    MPI_File file = io_new("pointers");
    OK(MPI_File_set_view(file, 4 * 100 * (MPI_Offset)lt_rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < 3; round++) {
        int n = (lt_rank + round) % 3 ? 5 : 0;
        for (int i = 0; i < 5; i++)
            out[i] = round * 5 + i;
        OK(MPI_File_get_position(file, &at));
        OK(MPI_File_write_all(file, out, n, MPI_INT, NO_STATUS));
        CHECK(at % 5 == 0);
        OK(MPI_File_read_at(file, at, in, n, MPI_INT, NO_STATUS));
        CHECK_BYTES(in, out, (size_t)n * 4);
        OK(MPI_File_get_position(file, &at));
    }
    CHECK_INT(at, 10);
    OK(MPI_File_close(&file));
}

IO_MAIN("io_collective", TEST(collective_writers), TEST(independent_writers), TEST(adjacent_bytes),
        TEST(everybody_reads), TEST(blocks_of_three_dimensions), TEST(steps_of_a_large_array),
        TEST(columns_of_a_file_that_is_cut_off), TEST(pointers_of_collective_accesses))
