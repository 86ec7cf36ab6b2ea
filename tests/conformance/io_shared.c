/* Shared file pointers: every access takes its own part, ordered ones by rank (MPI-5 section 14.4.4), and files opened
 * with MPI_MODE_SEQUENTIAL and MPI_MODE_APPEND. */
#include "io.h"

#include <time.h>

enum { WORDS = 25 };

/* A record says which rank wrote it, its number, and a pattern of both. */
static void make_record(int *record, int rank, int number)
{
    for (int i = 0; i < WORDS; i++)
        record[i] = rank * 1000003 + number * 101 + i * (i > 1);
    record[0] = rank;
    record[1] = number;
}

static int is_record(const int *record)
{
    int expected[WORDS];
    make_record(expected, record[0], record[1]);
    return memcmp(record, expected, sizeof expected) == 0;
}

/* Each of the records of every rank must be there once. */
static void check_records(const char *path, int each)
{
    MPI_Barrier(WORLD);
    if (lt_rank != 0)
        return;
    size_t n = (size_t)each * (size_t)lt_size;
    char *seen = calloc(n, 1);
    int wrong = 0, last[100];
    memset(last, -1, sizeof last);
    CHECK_INT(io_size(path), n * WORDS * sizeof(int));
    int *records = (int *)io_look(path, 0, n * WORDS * sizeof(int));
    for (size_t i = 0; i < n; i++) {
        const int *r = records + i * WORDS;
        if (!is_record(r) || r[0] < 0 || r[0] >= lt_size || r[1] < 0 || r[1] >= each || seen[r[0] * each + r[1]]++)
            wrong++;
        else if (r[1] <= last[r[0] % 100] && lt_size <= 100)
            wrong++; /* a rank's own records are in its order */
        else
            last[r[0] % 100] = r[1];
    }
    CHECK_INT(wrong, 0);
    free(records);
    free(seen);
}

static void every_write_has_its_place(void)
{
    enum { EACH = 200 };
    int record[WORDS];
    MPI_Offset at = -1;
    MPI_Status status;
    MPI_File file = io_new("log");
    for (int i = 0; i < EACH; i++) {
        make_record(record, lt_rank, i);
        OK(MPI_File_write_shared(file, record, WORDS, MPI_INT, &status));
        CHECK_COUNT(&status, MPI_INT, WORDS);
    }
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, (long long)sizeof record * EACH * lt_size);
    OK(MPI_File_close(&file));
    check_records(io_path("log"), EACH);
}

static void every_read_has_its_own(void)
{
    enum { EACH = 100 };
    int n = EACH * lt_size, record[WORDS], mine = 0, all = 0, *seen = calloc((size_t)n, sizeof(int)), wrong = 0;
    int *records = lt_alloc((size_t)n * sizeof record);
    MPI_Status status;
    for (int i = 0; i < n; i++)
        make_record(records + i * WORDS, i % lt_size, i);
    io_make(io_path("queue"), records, (size_t)n * sizeof record);
    MPI_File file = io_open(WORLD, "queue", MPI_MODE_RDONLY);
    for (;;) {
        int count = -1;
        OK(MPI_File_read_shared(file, record, WORDS, MPI_INT, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        if (count != WORDS) {
            CHECK_INT(count, 0);
            break;
        }
        if (is_record(record) && record[1] >= 0 && record[1] < n)
            seen[record[1]]++;
        mine++;
    }
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, WORLD));
    CHECK_INT(all, n);
    OK(MPI_Allreduce(MPI_IN_PLACE, seen, n, MPI_INT, MPI_SUM, WORLD));
    for (int i = 0; i < n; i++)
        wrong += seen[i] != 1;
    CHECK_INT(wrong, 0);
    OK(MPI_File_close(&file));
    free(records);
    free(seen);
}

/* How much rank writes in a round: sometimes nothing. */
static int share(int rank, int round)
{
    return (rank * 7 + round * 3) % 5 * 11;
}

static void ordered(void)
{
    enum { ROUNDS = 12 };
    int out[50], in[50], total = 0, at = 0, *expected;
    MPI_Status status;
    MPI_Offset position = -1;
    MPI_File file = io_new("ordered");
    OK(MPI_File_set_view(file, 20, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < ROUNDS; round++) {
        int n = share(lt_rank, round);
        for (int i = 0; i < n; i++)
            out[i] = lt_rank * 10000 + round * 100 + i;
        if (round % 2) {
            OK(MPI_File_write_ordered(file, out, n, MPI_INT, &status));
        } else {
            OK(MPI_File_write_ordered_begin(file, out, n, MPI_INT));
            OK(MPI_File_write_ordered_end(file, out, &status));
        }
        CHECK_COUNT(&status, MPI_INT, n);
        for (int rank = 0; rank < lt_size; rank++)
            total += share(rank, round);
        OK(MPI_Barrier(WORLD));
        OK(MPI_File_get_position_shared(file, &position));
        CHECK_INT(position, total);
        OK(MPI_Barrier(WORLD));
    }
    io_settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < ROUNDS; round++) {
        int n = share(lt_rank, round), wrong = 0;
        if (round % 2) {
            OK(MPI_File_read_ordered_begin(file, in, n, MPI_INT));
            OK(MPI_File_read_ordered_end(file, in, &status));
        } else {
            OK(MPI_File_read_ordered(file, in, n, MPI_INT, &status));
        }
        CHECK_COUNT(&status, MPI_INT, n);
        for (int i = 0; i < n; i++)
            wrong += in[i] != lt_rank * 10000 + round * 100 + i;
        CHECK_INT(wrong, 0);
    }
    OK(MPI_File_close(&file));
    expected = calloc((size_t)total + 5, sizeof(int));
    for (int round = 0; round < ROUNDS; round++)
        for (int rank = 0; rank < lt_size; rank++)
            for (int i = 0; i < share(rank, round); i++)
                expected[5 + at++] = rank * 10000 + round * 100 + i;
    CHECK_FILE(io_path("ordered"), expected, ((size_t)total + 5) * sizeof(int));
    free(expected);
}

static void seeking(void)
{
    int numbers[100], in[3];
    MPI_Offset at = -1;
    for (int i = 0; i < 100; i++)
        numbers[i] = i;
    io_make(io_path("seek"), numbers, sizeof numbers);
    MPI_File file = io_open(WORLD, "seek", MPI_MODE_RDWR);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_seek_shared(file, 10, MPI_SEEK_SET));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 10);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_read_ordered(file, in, 3, MPI_INT, NO_STATUS));
    CHECK_INT(in[0], 10 + 3 * lt_rank);
    OK(MPI_File_seek_shared(file, -3 * lt_size, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 10);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_seek_shared(file, -3 * lt_size, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 100 - 3 * lt_size);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_read_ordered(file, in, 3, MPI_INT, NO_STATUS));
    CHECK_INT(in[2], 100 - 3 * (lt_size - lt_rank) + 2);
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 0);
    /* A new view starts again. */
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 0);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_read_ordered(file, in, 1, MPI_INT, NO_STATUS));
    CHECK_INT(in[0], 2 + lt_rank);
    OK(MPI_File_close(&file));
}

/* The view of all ranks is one with holes: the pointer counts its elements. */
static void views_with_holes(void)
{
    int pair[2] = {lt_rank, -lt_rank};
    MPI_Datatype holes;
    MPI_File file = io_new("shared-holes");
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &holes));
    OK(MPI_Type_commit(&holes));
    OK(MPI_File_set_view(file, 4, MPI_INT, holes, "native", MPI_INFO_NULL));
    OK(MPI_File_write_ordered(file, pair, 2, MPI_INT, NO_STATUS));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0) {
        int *all = (int *)io_look(io_path("shared-holes"), 0, 24 * (size_t)lt_size);
        for (int rank = 0; rank < lt_size; rank++) {
            CHECK_INT(all[6 * rank + 1], rank);
            CHECK_INT(all[6 * rank + 4], -rank);
        }
        free(all);
    }
    OK(MPI_Type_free(&holes));
}

static void nonblocking(void)
{
    enum { EACH = 50 };
    static int records[EACH][WORDS], in[EACH][WORDS];
    MPI_Request requests[EACH];
    MPI_Status statuses[EACH];
    int wrong = 0, count;
    MPI_File file = io_new("nonblocking");
    for (int i = 0; i < EACH; i++) {
        make_record(records[i], lt_rank, i);
        OK(MPI_File_iwrite_shared(file, records[i], WORDS, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(EACH, requests, statuses));
    for (int i = 0; i < EACH; i++)
        CHECK_COUNT(&statuses[i], MPI_INT, WORDS);
    io_settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int i = 0; i < EACH; i++)
        OK(MPI_File_iread_shared(file, in[i], WORDS, MPI_INT, &requests[i]));
    OK(MPI_Waitall(EACH, requests, statuses));
    for (int i = 0; i < EACH; i++) {
        OK(MPI_Get_count(&statuses[i], MPI_INT, &count));
        wrong += count != WORDS || !is_record(in[i]);
    }
    CHECK_INT(wrong, 0);
    OK(MPI_File_close(&file));
    check_records(io_path("nonblocking"), EACH);
}

/* The other pointers do not move it, and it does not move them. */
static void beside_other_accesses(void)
{
    int value = lt_rank;
    MPI_Offset at = -1;
    MPI_File file = io_new("beside");
    OK(MPI_File_seek(file, 1000 + 4 * lt_rank, MPI_SEEK_SET));
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_write(file, &value, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_write_at(file, 2000 + 4 * lt_rank, &value, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 1004 + 4 * lt_rank);
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK_INT(at, 4 * lt_size);
    OK(MPI_File_close(&file));
}

static void sequential_and_append(void)
{
    int value = lt_rank + 1, in[2], sum = 0;
    MPI_Offset at = -1;
    io_make(io_path("sequence"), "12345678", 8);
    MPI_File file = io_open(WORLD, "sequence", MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_SEQUENTIAL);
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, NO_STATUS));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(WORLD));
    CHECK_INT(io_size(io_path("sequence")), 8 + 4 * lt_size);
    OK(MPI_Barrier(WORLD));
    file = io_open(WORLD, "sequence", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    if (lt_rank == 0) {
        OK(MPI_File_read_shared(file, in, 2, MPI_INT, NO_STATUS));
        CHECK_BYTES(in, "12345678", 8);
    }
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &at, &(MPI_Datatype){0}, &(MPI_Datatype){0}, (char[MPI_MAX_DATAREP_STRING]){0}));
    CHECK_INT(at, 8);
    OK(MPI_File_read_ordered(file, in, 1, MPI_INT, NO_STATUS));
    OK(MPI_Allreduce(in, &sum, 1, MPI_INT, MPI_SUM, WORLD));
    CHECK_INT(sum, lt_size * (lt_size + 1) / 2);
    OK(MPI_File_close(&file));
}

/* Rank 0 makes no call of MPI while the others write: they need nothing of it. */
static void nobody_waits_for_a_rank_that_computes(void)
{
    int record[WORDS], others = lt_size - 1;
    MPI_File file = io_new("computing");
    const char *path = io_path("computing");
    OK(MPI_Barrier(WORLD));
    if (lt_rank == 0) {
        time_t start = time(NULL);
        while (io_size(path) < (long long)sizeof record * others && time(NULL) < start + 100)
            usleep(1000);
        CHECK_INT(io_size(path), sizeof record * (size_t)others);
    } else {
        make_record(record, lt_rank, 0);
        OK(MPI_File_write_shared(file, record, WORDS, MPI_INT, NO_STATUS));
    }
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_close(&file));
}

/* A pipe has no offsets: it is read and written in order, with the shared pointer only. */
static void pipes_are_sequential(void)
{
    int ends[2], n;
    CHECK_INT(pipe(ends), 0);
    char names[2][30], text[20] = "";
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "/dev/fd/%d", ends[i]);
    MPI_File in, out;
    MPI_Status status;
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_SELF, names[1], MPI_MODE_WRONLY, MPI_INFO_NULL, &out));
    OK(MPI_File_open(MPI_COMM_SELF, names[1], MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &out));
    OK(MPI_File_open(MPI_COMM_SELF, names[0], MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &in));
    OK(MPI_File_write_shared(out, "first ", 6, MPI_CHAR, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &n));
    CHECK_INT(n, 6);
    OK(MPI_File_write_ordered(out, "second", 6, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(out));
    OK(MPI_File_close(&out));
    CHECK_INT(close(ends[1]), 0);
    OK(MPI_File_read_shared(in, text, sizeof text - 1, MPI_CHAR, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &n));
    CHECK_INT(n, 12);
    CHECK(!strcmp(text, "first second"));
    OK(MPI_File_close(&in));
    CHECK_INT(close(ends[0]), 0);
}

IO_MAIN("io_shared", TEST(pipes_are_sequential), TEST(every_write_has_its_place), TEST(every_read_has_its_own),
        TEST(ordered), TEST(seeking), TEST(views_with_holes), TEST(nonblocking), TEST(beside_other_accesses),
        TEST(sequential_and_append), TEST(nobody_waits_for_a_rank_that_computes))
