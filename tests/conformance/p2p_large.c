/* Large messages: 64 KB to 64 MB, expected and unexpected, both ways at once, several at a time, non-contiguous: MPI-5
 * chapter 3.
 *
 * With an argument (a number of bytes) one message of that length goes from rank 0 to rank 1 in a single large-count
 * call.
 */
#include "limosa_test.h"

static const size_t sizes[] = {65536, 65537, 262144, 1000003, 4194304, 16777216, 67108864};
enum { N_SIZES = sizeof sizes / sizeof *sizes };
static unsigned char *out, *in;
static int to, from;

static void setup(void)
{
    out = lt_alloc(sizes[N_SIZES - 1]);
    in = lt_alloc(sizes[N_SIZES - 1]);
    to = (lt_rank + 1) % lt_size;
    from = (lt_rank + lt_size - 1) % lt_size;
}

static void expected(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        int n = (int)sizes[s];
        lt_fill(out, sizes[s], (uint64_t)lt_rank);
        memset(in, 0, sizes[s]);
        OK(MPI_Irecv(in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Isend(out, n, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[0], from, 1, MPI_BYTE, n);
        CHECK_FILLED(in, sizes[s], (uint64_t)from);
    }
}

static void unexpected(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Request request;
        MPI_Status status;
        int n = (int)sizes[s];
        lt_fill(out, sizes[s], (uint64_t)(lt_rank + s));
        memset(in, 0, sizes[s]);
        OK(MPI_Isend(out, n, MPI_BYTE, to, 2, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Recv(in, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_STATUS(&status, from, 2, MPI_BYTE, n);
        CHECK_FILLED(in, sizes[s], (uint64_t)(from + s));
    }
}

/* The receive buffer is larger than the message, and what lies behind the message stays as it was. */
static void into_larger_buffers(void)
{
    for (int s = 0; s < N_SIZES - 1; s++) {
        MPI_Status status;
        int n = (int)sizes[s];
        lt_fill(out, sizes[s], 9);
        memset(in, 0x5a, sizes[s] + 100);
        OK(MPI_Sendrecv(out, n, MPI_BYTE, to, 1, in, (int)sizes[s + 1], MPI_BYTE, from, 1, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, 1, MPI_BYTE, n);
        CHECK_FILLED(in, sizes[s], 9);
        for (size_t i = sizes[s]; i < sizes[s] + 100; i++)
            CHECK_INT(in[i], 0x5a);
    }
}

/* Many large messages of all pairs are under way at the same time. */
static void all_to_all_at_once(void)
{
    size_t each = 300000;
    MPI_Request *requests = lt_alloc(2 * (size_t)lt_size * sizeof *requests);
    unsigned char *mine = lt_alloc(each * (size_t)lt_size), *theirs = lt_alloc(each * (size_t)lt_size);
    for (int round = 0; round < 3; round++) {
        for (int peer = 0; peer < lt_size; peer++) {
            lt_fill(mine + each * (size_t)peer, each, (uint64_t)(lt_rank * 100 + peer + round));
            OK(MPI_Irecv(theirs + each * (size_t)peer, (int)each, MPI_BYTE, peer, round, MPI_COMM_WORLD,
                         &requests[peer]));
        }
        for (int peer = 0; peer < lt_size; peer++)
            OK(MPI_Isend(mine + each * (size_t)peer, (int)each, MPI_BYTE, peer, round, MPI_COMM_WORLD,
                         &requests[lt_size + peer]));
        OK(MPI_Waitall(2 * lt_size, requests, MPI_STATUSES_IGNORE));
        for (int peer = 0; peer < lt_size; peer++)
            CHECK_FILLED(theirs + each * (size_t)peer, each, (uint64_t)(peer * 100 + lt_rank + round));
    }
    free(requests);
    free(mine);
    free(theirs);
}

/* Strided on one side, contiguous at the receiver, and strided on both with different strides. */
static void strided(void)
{
    enum { BLOCKS = 20000, LENGTH = 25 };
    MPI_Datatype wide, narrow;
    double *a = (double *)out, *b = (double *)in;
    OK(MPI_Type_vector(BLOCKS, LENGTH, 2 * LENGTH, MPI_DOUBLE, &wide));
    OK(MPI_Type_vector(BLOCKS * LENGTH / 5, 5, 7, MPI_DOUBLE, &narrow));
    OK(MPI_Type_commit(&wide));
    OK(MPI_Type_commit(&narrow));
    for (int i = 0; i < 2 * BLOCKS * LENGTH; i++)
        a[i] = lt_rank * 1e7 + i;
    for (int way = 0; way < 3; way++) {
        memset(b, 0, sizeof(double) * BLOCKS * LENGTH * 2);
        MPI_Datatype type = way == 0 ? MPI_DOUBLE : way == 1 ? wide : narrow;
        OK(MPI_Sendrecv(a, 1, wide, to, way, b, way ? 1 : BLOCKS * LENGTH, type, from, way, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        int wrong = 0;
        for (int k = 0; k < BLOCKS * LENGTH; k++) {
            int sent = k / LENGTH * 2 * LENGTH + k % LENGTH;
            int got = way == 0 ? k : way == 1 ? sent : k / 5 * 7 + k % 5;
            wrong += b[got] != from * 1e7 + sent;
            if (way == 2 && k % 5 == 4 && k < BLOCKS * LENGTH - 1)
                wrong += b[got + 1] != 0;
        }
        CHECK_INT(wrong, 0);
    }
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&narrow));
}

/* A large send goes on while the receiver, which has posted its receive, is busy elsewhere; and many are left for
 * later. */
static void outstanding(void)
{
    enum { N = 16 };
    size_t each = 1000000;
    MPI_Request requests[2 * N];
    for (int i = 0; i < N; i++) {
        lt_fill(out + each * (size_t)i, each, (uint64_t)(lt_rank + i));
        OK(MPI_Isend(out + each * (size_t)i, (int)each, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = N - 1; i >= 0; i--)
        OK(MPI_Irecv(in + each * (size_t)i, (int)each, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[N + i]));
    OK(MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK_FILLED(in + each * (size_t)i, each, (uint64_t)(from + i));
}

static MPI_Count huge_bytes;

static void huge(void)
{
    unsigned char *buffer = lt_alloc((size_t)huge_bytes);
    if (lt_rank == 0) {
        lt_fill(buffer, (size_t)huge_bytes, 5);
        OK(MPI_Send_c(buffer, huge_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else if (lt_rank == 1) {
        MPI_Status status;
        MPI_Count count = 0;
        OK(MPI_Recv_c(buffer, huge_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
        CHECK_INT(count, huge_bytes);
        CHECK_FILLED(buffer, (size_t)huge_bytes, 5);
    }
    free(buffer);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {
        TEST(setup),   TEST(expected),   TEST(unexpected), TEST(into_larger_buffers), TEST(all_to_all_at_once),
        TEST(strided), TEST(outstanding)};
    static const lt_test one[] = {TEST(huge)};
    MPI_Init(&argc, &argv);
    long failures;
    if (argc > 1) {
        huge_bytes = atoll(argv[1]);
        failures = lt_run("p2p_large", one, 1);
    } else {
        failures = lt_run("p2p_large", tests, sizeof tests / sizeof *tests);
    }
    MPI_Finalize();
    return failures != 0;
}
