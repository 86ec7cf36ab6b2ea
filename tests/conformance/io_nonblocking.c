/* Non-blocking accesses in every form: many under way, on several files, completed in any order by any call; and
 * collective ones on several files started in different orders (MPI-5 sections 14.4.2 and 14.4.3). */
#include "io.h"

enum { FILES = 4, PIECES = 25, PIECE = 700 };

static void explicit_offsets_on_several_files(void)
{
    static int out[FILES][PIECES][PIECE], in[FILES][PIECES][PIECE];
    MPI_File files[FILES];
    MPI_Request requests[FILES * PIECES];
    MPI_Status statuses[FILES * PIECES];
    char name[20];
    for (int f = 0; f < FILES; f++) {
        snprintf(name, sizeof name, "many-%d", f);
        files[f] = io_new(name);
        for (int p = 0; p < PIECES; p++)
            lt_fill(out[f][p], sizeof out[f][p], (uint64_t)(lt_rank * 10000 + f * 100 + p));
    }
    MPI_Offset mine = (MPI_Offset)sizeof out[0] * lt_rank;
    int n = 0;
    for (int k = 0; k < FILES * PIECES; k++) { /* in another order on each rank */
        int i = lt_rank % 2 ? FILES * PIECES - 1 - k : k, f = i % FILES, p = i / FILES;
        OK(MPI_File_iwrite_at(files[f], mine + p * (MPI_Offset)sizeof out[f][p], out[f][p], PIECE, MPI_INT,
                              &requests[n++]));
    }
    OK(MPI_Waitall(n, requests, statuses));
    for (int i = 0; i < n; i++)
        CHECK_COUNT(&statuses[i], MPI_INT, PIECE);
    n = 0;
    for (int f = FILES - 1; f >= 0; f--)
        for (int p = 0; p < PIECES; p++)
            OK(MPI_File_iread_at(files[f], mine + p * (MPI_Offset)sizeof out[f][p], in[f][p], PIECE, MPI_INT,
                                 &requests[n++]));
    for (int left = n, index; left > 0; left--) {
        MPI_Status status;
        OK(MPI_Waitany(n, requests, &index, &status));
        CHECK(index >= 0 && index < n && requests[index] == MPI_REQUEST_NULL);
        CHECK_COUNT(&status, MPI_INT, PIECE);
        int f = FILES - 1 - index / PIECES, p = index % PIECES;
        CHECK_BYTES(in[f][p], out[f][p], sizeof in[f][p]);
    }
    for (int f = 0; f < FILES; f++)
        OK(MPI_File_close(&files[f]));
}

/* The pointer moves when the access starts. */
static void individual_pointers(void)
{
    int out[10], in[10] = {0}, index[10], done = 0, flag = 0, n = 0;
    MPI_Request requests[10];
    MPI_Status statuses[10], status;
    MPI_Offset at = -1;
    MPI_File file = io_new("pointer");
    OK(MPI_File_set_view(file, 40 * (MPI_Offset)lt_rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 10; i++) {
        out[i] = lt_rank * 10 + i;
        OK(MPI_File_iwrite(file, &out[i], 1, MPI_INT, &requests[i]));
        OK(MPI_File_get_position(file, &at));
        CHECK_INT(at, i + 1);
    }
    while (done < 10) {
        OK(MPI_Testsome(10, requests, &n, index, statuses));
        for (int i = 0; i < n; i++)
            CHECK_COUNT(&statuses[i], MPI_INT, 1);
        done += n;
    }
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread(file, in, 4, MPI_INT, &requests[0]));
    OK(MPI_File_iread(file, in + 4, 6, MPI_INT, &requests[1]));
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, 10);
    while (!flag)
        OK(MPI_Test(&requests[1], &flag, &status));
    CHECK_COUNT(&status, MPI_INT, 6);
    OK(MPI_Wait(&requests[0], &status));
    CHECK_COUNT(&status, MPI_INT, 4);
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_close(&file));
}

/* Types are freed, the view has holes, memory has gaps, and the program computes meanwhile. */
static void types_and_computing(void)
{
    enum { N = 40000 };
    static double out[2 * N], in[2 * N];
    MPI_Datatype gaps, turns;
    MPI_Request request;
    MPI_Status status;
    double sum = 0;
    for (int i = 0; i < 2 * N; i++)
        out[i] = i % 2 ? -1 : lt_rank + i * 1e-6;
    MPI_File file = io_new("types");
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 16, &gaps));
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 8 * (MPI_Aint)lt_size, &turns));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_Type_commit(&turns));
    OK(MPI_File_set_view(file, 8 * lt_rank, MPI_DOUBLE, turns, "native", MPI_INFO_NULL));
    OK(MPI_File_iwrite_at(file, 0, out, N, gaps, &request));
    for (int i = 0; i < 1000000; i++)
        sum += i * 0.5;
    CHECK(sum > 0);
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_DOUBLE, N);
    OK(MPI_File_iread_at(file, 0, in, N, gaps, &request));
    OK(MPI_Type_free(&gaps));
    OK(MPI_Type_free(&turns));
    OK(MPI_Wait(&request, &status));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += in[2 * i] != out[2 * i] || in[2 * i + 1] != 0;
    CHECK_INT(wrong, 0);
    OK(MPI_File_close(&file));
}

static void ends_of_files(void)
{
    char in[20];
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    io_make(io_path("end"), "0123456789", 10);
    MPI_File file = io_open(WORLD, "end", MPI_MODE_RDONLY);
    OK(MPI_File_iread_at(file, 6, in, 20, MPI_CHAR, &request));
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, &status));
    CHECK_COUNT(&status, MPI_CHAR, 4);
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_CHAR, 4);
    CHECK_BYTES(in, "6789", 4);
    OK(MPI_File_iread(file, in, 0, MPI_CHAR, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_CHAR, 0);
    OK(MPI_File_iread_at_all(file, 9, in, 5, MPI_CHAR, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_COUNT(&status, MPI_CHAR, 1);
    OK(MPI_File_close(&file));
}

/* Collective accesses to several files at once. Each file has its own order: ranks may start them in different ones. */
static void collectives_in_different_orders(void)
{
    enum { N = 5000 };
    static int out[FILES][2][N], in[FILES][N];
    MPI_File files[FILES];
    MPI_Request requests[2 * FILES];
    MPI_Status status;
    char name[20];
    int index;
    for (int f = 0; f < FILES; f++) {
        MPI_Datatype turns;
        snprintf(name, sizeof name, "orders-%d", f);
        files[f] = io_new(name);
        OK(MPI_Type_create_resized(MPI_INT, 0, 4 * (MPI_Aint)lt_size, &turns));
        OK(MPI_Type_commit(&turns));
        OK(MPI_File_set_view(files[f], 4 * lt_rank, MPI_INT, turns, "native", MPI_INFO_NULL));
        OK(MPI_Type_free(&turns));
        for (int i = 0; i < 2 * N; i++)
            out[f][i / N][i % N] = lt_rank * 1000000 + f * 100000 + i;
    }
    for (int k = 0; k < 2 * FILES; k++) {
        int f = (lt_rank % 2 ? FILES - 1 - k % FILES : k + lt_rank) % FILES;
        if (k < FILES)
            OK(MPI_File_iwrite_all(files[f], out[f][0], N, MPI_INT, &requests[k]));
        else
            OK(MPI_File_iwrite_at_all(files[f], N, out[f][1], N, MPI_INT, &requests[k]));
    }
    for (int k = 0; k < 2 * FILES; k++) {
        OK(MPI_Waitany(2 * FILES, requests, &index, &status));
        CHECK_COUNT(&status, MPI_INT, N);
    }
    for (int k = 0; k < FILES; k++) {
        int f = (k + lt_rank) % FILES;
        OK(MPI_File_iread_at_all(files[f], N / 2, in[f], N, MPI_INT, &requests[k]));
    }
    OK(MPI_Waitall(FILES, requests, MPI_STATUSES_IGNORE));
    for (int f = 0; f < FILES; f++) {
        CHECK_BYTES(in[f], out[f][0] + N / 2, N * sizeof(int));
        OK(MPI_File_close(&files[f]));
    }
}

/* Several collective accesses to one file under way, together with messages and a collective of the program. */
static void collectives_in_a_row(void)
{
    enum { N = 1000, ROUNDS = 8 };
    static int out[ROUNDS][N], in[N];
    MPI_Request requests[ROUNDS + 3];
    int sum = 0, from_left = -1, right = (lt_rank + 1) % lt_size, left = (lt_rank + lt_size - 1) % lt_size;
    MPI_File file = io_new("row");
    MPI_Offset at = -1;
    OK(MPI_File_set_view(file, (MPI_Offset)sizeof out * lt_rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_Irecv(&from_left, 1, MPI_INT, left, 5, WORLD, &requests[ROUNDS]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            out[round][i] = lt_rank * 100000 + round * N + i;
        OK(MPI_File_iwrite_all(file, out[round], N, MPI_INT, &requests[round]));
    }
    OK(MPI_File_get_position(file, &at));
    CHECK_INT(at, N * ROUNDS);
    OK(MPI_Isend(&lt_rank, 1, MPI_INT, right, 5, WORLD, &requests[ROUNDS + 1]));
    OK(MPI_Iallreduce(&lt_size, &sum, 1, MPI_INT, MPI_SUM, WORLD, &requests[ROUNDS + 2]));
    OK(MPI_Waitall(ROUNDS + 3, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(sum, lt_size * lt_size);
    CHECK_INT(from_left, left);
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_File_read_at(file, round * N, in, N, MPI_INT, NO_STATUS));
        CHECK_BYTES(in, out[round], sizeof in);
    }
    OK(MPI_File_close(&file));
}

/* A non-blocking call never waits for another rank: rank 0 starts its part long before the others do. */
static void starting_waits_for_nobody(void)
{
    int out = lt_rank + 5, in = -1, token = 0;
    MPI_Request request;
    MPI_File file = io_new("start");
    if (lt_rank == 0) {
        OK(MPI_File_iwrite_at_all(file, 0, &out, 1, MPI_INT, &request));
        for (int rank = 1; rank < lt_size; rank++) /* they wait for this before they start theirs */
            OK(MPI_Send(&token, 1, MPI_INT, rank, 6, WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 6, WORLD, NO_STATUS));
        OK(MPI_File_iwrite_at_all(file, 4 * lt_rank, &out, 1, MPI_INT, &request));
    }
    OK(MPI_Wait(&request, NO_STATUS));
    OK(MPI_File_read_at(file, 4 * lt_rank, &in, 1, MPI_INT, NO_STATUS));
    CHECK_INT(in, out);
    OK(MPI_File_close(&file));
}

/* A thousand small ones under way. */
static void a_thousand(void)
{
    enum { N = 1000 };
    static int out[N], in[N];
    static MPI_Request requests[N];
    int flag = 0;
    MPI_File file = io_new("thousand");
    for (int i = 0; i < N; i++) {
        out[i] = lt_rank * N + i;
        OK(MPI_File_iwrite_at(file, 4 * ((MPI_Offset)lt_rank * N + i), &out[i], 1, MPI_INT, &requests[i]));
    }
    while (!flag)
        OK(MPI_Testall(N, requests, &flag, MPI_STATUSES_IGNORE));
    OK(MPI_File_read_at(file, 4 * (MPI_Offset)lt_rank * N, in, N, MPI_INT, NO_STATUS));
    CHECK_BYTES(in, out, sizeof out);
    OK(MPI_File_close(&file));
}

IO_MAIN("io_nonblocking", TEST(explicit_offsets_on_several_files), TEST(individual_pointers), TEST(types_and_computing),
        TEST(ends_of_files), TEST(collectives_in_different_orders), TEST(collectives_in_a_row),
        TEST(starting_waits_for_nobody), TEST(a_thousand))
