/* Matching: wildcards, order, probes, matched probes, MPI_PROC_NULL, contexts, truncation, self messages: MPI-5
 * sections 3.2.4, 3.5, 3.8, 3.10. Sizes lie on both sides of every protocol limit, so that early, late, small and large
 * messages mix. */
#include "limosa_test.h"

static const int sizes[] = {0, 4, 60, 1000, 20000, 120000};
enum { N_SIZES = sizeof sizes / sizeof *sizes, MAX_BYTES = 120000 };
static unsigned char buffer[MAX_BYTES + 64];

static void any_source(void)
{
    enum { ROUNDS = 12 };
    if (lt_rank != 0) {
        for (int round = 0; round < ROUNDS; round++) {
            int n = sizes[round % N_SIZES];
            lt_fill(buffer, (size_t)n, (uint64_t)(lt_rank * 100 + round));
            OK(MPI_Send(buffer, n, MPI_BYTE, 0, round, MPI_COMM_WORLD));
        }
    } else {
        int *next = calloc((size_t)lt_size, sizeof *next);
        for (int i = 0; i < ROUNDS * (lt_size - 1); i++) {
            MPI_Status status;
            OK(MPI_Recv(buffer, MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            int source = status.MPI_SOURCE, round = status.MPI_TAG;
            if (source < 1 || source >= lt_size) {
                lt_fail(__FILE__, __LINE__, "source %d does not exist", source);
                break;
            }
            CHECK_INT(round, next[source]);
            next[source] = round + 1;
            CHECK_STATUS(&status, source, round, MPI_BYTE, sizes[round % N_SIZES]);
            CHECK_FILLED(buffer, (size_t)sizes[round % N_SIZES], (uint64_t)(source * 100 + round));
        }
        free(next);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Messages of one pair with one tag arrive in the order sent, whatever their sizes, and receives match in the order
 * posted. */
static void no_overtaking(void)
{
    enum { N = 200 };
    static unsigned char in[N][2000];
    MPI_Request requests[2 * N];
    unsigned char *out[N];
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < N; i++) {
            int n = (i * 7919) % 2000;
            out[i] = lt_alloc((size_t)n);
            lt_fill(out[i], (size_t)n, (uint64_t)(lt_rank + i));
            if (!late)
                OK(MPI_Irecv(in[i], 2000, MPI_BYTE, i % 3 ? from : MPI_ANY_SOURCE, i % 2 ? 1 : MPI_ANY_TAG,
                             MPI_COMM_WORLD, &requests[i]));
        }
        for (int i = 0; i < N; i++)
            OK((i % 5 ? MPI_Isend : MPI_Issend)(out[i], (i * 7919) % 2000, MPI_BYTE, to, 1, MPI_COMM_WORLD,
                                                &requests[N + i]));
        for (int i = 0; i < N && late; i++)
            OK(MPI_Irecv(in[i], 2000, MPI_BYTE, i % 3 ? from : MPI_ANY_SOURCE, i % 2 ? 1 : MPI_ANY_TAG, MPI_COMM_WORLD,
                         &requests[i]));
        MPI_Status statuses[2 * N];
        OK(MPI_Waitall(2 * N, requests, statuses));
        for (int i = 0; i < N; i++) {
            CHECK_STATUS(&statuses[i], from, 1, MPI_BYTE, (i * 7919) % 2000);
            CHECK_FILLED(in[i], (size_t)((i * 7919) % 2000), (uint64_t)(from + i));
            free(out[i]);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* Large and small messages alternate; the receiver takes them last tag first. */
static void by_tag_in_reverse(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    MPI_Request requests[N_SIZES];
    unsigned char *out[N_SIZES];
    for (int s = 0; s < N_SIZES; s++) {
        out[s] = lt_alloc((size_t)sizes[s]);
        lt_fill(out[s], (size_t)sizes[s], (uint64_t)(lt_rank + s));
        OK(MPI_Isend(out[s], sizes[s], MPI_BYTE, to, s, MPI_COMM_WORLD, &requests[s]));
    }
    for (int s = N_SIZES - 1; s >= 0; s--) {
        MPI_Status status;
        OK(MPI_Recv(buffer, MAX_BYTES, MPI_BYTE, from, s, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
        CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)(from + s));
    }
    OK(MPI_Waitall(N_SIZES, requests, MPI_STATUSES_IGNORE));
    for (int s = 0; s < N_SIZES; s++)
        free(out[s]);
}

static void tag_limits(void)
{
    int *upper, flag, in = 0, out = 3;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    CHECK_INT(flag, 1);
    CHECK(*upper >= 32767);
    int tags[] = {0, 32767, *upper};
    for (int i = 0; i < 3; i++) {
        MPI_Status status;
        OK(MPI_Sendrecv(&out, 1, MPI_INT, lt_rank, tags[i], &in, 1, MPI_INT, lt_rank, tags[i], MPI_COMM_WORLD,
                        &status));
        CHECK_STATUS(&status, lt_rank, tags[i], MPI_INT, 1);
    }
}

static void probe(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Request request;
        MPI_Status status;
        unsigned char *out = lt_alloc((size_t)sizes[s]);
        lt_fill(out, (size_t)sizes[s], (uint64_t)(lt_rank + s));
        OK(MPI_Isend(out, sizes[s], MPI_BYTE, to, s, MPI_COMM_WORLD, &request));
        OK(MPI_Probe(s % 2 ? from : MPI_ANY_SOURCE, s % 3 ? s : MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
        /* A probe leaves the message where it is. */
        int flag = 0;
        OK(MPI_Iprobe(from, s, MPI_COMM_WORLD, &flag, &status));
        CHECK_INT(flag, 1);
        CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
        OK(MPI_Iprobe(from, s + 1, MPI_COMM_WORLD, &flag, &status));
        CHECK_INT(flag, 0);
        OK(MPI_Recv(buffer, sizes[s], MPI_BYTE, status.MPI_SOURCE = from, s, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
        CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)(from + s));
        OK(MPI_Iprobe(from, s, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK_INT(flag, 0);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        free(out);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* A probe reports the first message that a receive would take. */
static void probe_respects_order(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    MPI_Request requests[3];
    MPI_Status status;
    for (int i = 0; i < 3; i++)
        OK(MPI_Isend(buffer, 10 + i, MPI_BYTE, to, 7, MPI_COMM_WORLD, &requests[i]));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, 7, MPI_BYTE, 10 + i);
        unsigned char in[16];
        OK(MPI_Recv(in, 16, MPI_BYTE, from, 7, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, 7, MPI_BYTE, 10 + i);
    }
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
}

static void matched_probe(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int s = 0; s < N_SIZES; s++) {
        for (int way = 0; way < 4; way++) {
            MPI_Request request, receive;
            MPI_Status status;
            MPI_Message message = MPI_MESSAGE_NULL;
            int flag = 0;
            unsigned char *out = lt_alloc((size_t)sizes[s]);
            lt_fill(out, (size_t)sizes[s], (uint64_t)(lt_rank + s + way));
            OK(MPI_Isend(out, sizes[s], MPI_BYTE, to, s, MPI_COMM_WORLD, &request));
            if (way % 2) {
                OK(MPI_Mprobe(from, s, MPI_COMM_WORLD, &message, &status));
            } else {
                while (!flag &&
                       OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status))) {
                }
            }
            CHECK(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC);
            CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
            /* The message is taken: no other receive sees it. */
            OK(MPI_Iprobe(from, s, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            CHECK_INT(flag, 0);
            if (way < 2) {
                OK(MPI_Mrecv(buffer, sizes[s], MPI_BYTE, &message, &status));
            } else {
                OK(MPI_Imrecv(buffer, sizes[s], MPI_BYTE, &message, &receive));
                OK(MPI_Wait(&receive, &status));
            }
            CHECK_PTR(message, MPI_MESSAGE_NULL);
            CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
            CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)(from + s + way));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            free(out);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    int flag = 1;
    OK(MPI_Improbe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    CHECK_INT(flag, 0);
}

#define CHECK_PROC_NULL(status) CHECK_STATUS((status), MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0)

static void proc_null(void)
{
    int value = 42, flag = 0;
    MPI_Status status;
    MPI_Request request;
    MPI_Message message = MPI_MESSAGE_NULL;
    OK(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Rsend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Bsend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Issend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
                    &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &status));
    CHECK_INT(flag, 1);
    CHECK_PROC_NULL(&status);
    OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    CHECK_PTR(message, MPI_MESSAGE_NO_PROC);
    CHECK_PROC_NULL(&status);
    OK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status));
    CHECK_PTR(message, MPI_MESSAGE_NULL);
    CHECK_PROC_NULL(&status);
    flag = 0;
    OK(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK_INT(flag, 1);
    CHECK_PTR(message, MPI_MESSAGE_NO_PROC);
    OK(MPI_Imrecv(&value, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, &status));
    CHECK_PROC_NULL(&status);
    OK(MPI_Request_free(&request));
    CHECK_INT(value, 42);
}

/* The same source and tag on another communicator is another message. */
static void contexts_are_apart(void)
{
    MPI_Comm a, b;
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size, on_world = 0, on_a = 0, on_b = 0;
    int values[] = {1, 2, 3};
    MPI_Request requests[3];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &b));
    OK(MPI_Isend(&values[0], 1, MPI_INT, to, 4, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&values[1], 1, MPI_INT, to, 4, a, &requests[1]));
    OK(MPI_Isend(&values[2], 1, MPI_INT, to, 4, b, &requests[2]));
    OK(MPI_Recv(&on_b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&on_a, 1, MPI_INT, from, MPI_ANY_TAG, a, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&on_world, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(on_world, 1);
    CHECK_INT(on_a, 2);
    CHECK_INT(on_b, 3);
    /* A wildcard receive does not take the messages of a collective. */
    MPI_Request wild;
    int sum, one = 1;
    OK(MPI_Irecv(&on_a, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, a, &wild));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, a));
    CHECK_INT(sum, lt_size);
    int flag = 1;
    OK(MPI_Test(&wild, &flag, MPI_STATUS_IGNORE));
    CHECK_INT(flag, 0);
    OK(MPI_Barrier(a));
    values[0] = 99;
    OK(MPI_Send(&values[0], 1, MPI_INT, to, 4, a));
    OK(MPI_Wait(&wild, MPI_STATUS_IGNORE));
    CHECK_INT(on_a, 99);
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free(&b));
}

/* A message longer than the receive buffer: MPI_ERR_TRUNCATE at the receiver, nothing written behind the buffer, sender
 * unharmed. */
static void truncation(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int s = 1; s < N_SIZES; s++) {
        for (int late = 0; late < 2; late++) {
            MPI_Request requests[2];
            MPI_Status status;
            unsigned char *out = lt_alloc((size_t)sizes[s]);
            int room = sizes[s] / 2;
            lt_fill(out, (size_t)sizes[s], (uint64_t)lt_rank);
            memset(buffer, 0xee, sizeof buffer);
            if (!late)
                OK(MPI_Irecv(buffer, room, MPI_BYTE, from, s, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Isend(out, sizes[s], MPI_BYTE, to, s, MPI_COMM_WORLD, &requests[1]));
            if (late) {
                OK(MPI_Probe(from, s, MPI_COMM_WORLD, &status));
                FAILS(MPI_ERR_TRUNCATE, MPI_Recv(buffer, room, MPI_BYTE, from, s, MPI_COMM_WORLD, &status));
            } else {
                FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[0], &status));
                CHECK_PTR(requests[0], MPI_REQUEST_NULL);
            }
            CHECK_INT(status.MPI_SOURCE, from);
            CHECK_INT(status.MPI_TAG, s);
            for (int i = room; i < MAX_BYTES; i++) {
                if (buffer[i] != 0xee) {
                    lt_fail(__FILE__, __LINE__, "a truncated message of %d bytes wrote byte %d, buffer length %d",
                            sizes[s], i, room);
                    break;
                }
            }
            OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            /* The library is as usable as before. */
            OK(MPI_Sendrecv(out, sizes[s], MPI_BYTE, to, s, buffer, sizes[s], MPI_BYTE, from, s, MPI_COMM_WORLD,
                            &status));
            CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)from);
            free(out);
        }
    }
}

static void self_messages(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Request requests[2];
        MPI_Status status;
        unsigned char *out = lt_alloc((size_t)sizes[s]);
        lt_fill(out, (size_t)sizes[s], (uint64_t)s);
        /* Send first, receive later: it is unexpected in one's own process. */
        OK(MPI_Isend(out, sizes[s], MPI_BYTE, lt_rank, s, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Recv(buffer, MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, s, MPI_COMM_WORLD, &status));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        CHECK_STATUS(&status, lt_rank, s, MPI_BYTE, sizes[s]);
        CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)s);
        memset(buffer, 0, MAX_BYTES);
        OK(MPI_Irecv(buffer, MAX_BYTES, MPI_BYTE, 0, s, MPI_COMM_SELF, &requests[0]));
        OK(MPI_Ssend(out, sizes[s], MPI_BYTE, 0, s, MPI_COMM_SELF));
        OK(MPI_Wait(&requests[0], &status));
        CHECK_STATUS(&status, 0, s, MPI_BYTE, sizes[s]);
        CHECK_FILLED(buffer, (size_t)sizes[s], (uint64_t)s);
        free(out);
    }
}

/* Wildcard and exact receives posted in turns: each message goes to the first posted receive that it fits. */
static void posted_order_with_wildcards(void)
{
    if (lt_size < 2)
        return;
    if (lt_rank == 0) {
        int in[5] = {0};
        MPI_Request requests[5];
        MPI_Status statuses[5];
        OK(MPI_Irecv(&in[0], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Irecv(&in[2], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Irecv(&in[3], 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[3]));
        OK(MPI_Irecv(&in[4], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[4]));
        int go = 1;
        OK(MPI_Send(&go, 1, MPI_INT, 1, 50, MPI_COMM_WORLD));
        OK(MPI_Waitall(5, requests, statuses));
        /* Sent in this order: 10 with tag 1, then 20, 21, 22, 23 with tag 2. */
        CHECK_INT(in[0], 20);
        CHECK_INT(in[1], 10);
        CHECK_INT(in[2], 21);
        CHECK_INT(in[3], 22);
        CHECK_INT(in[4], 23);
        CHECK_INT(statuses[1].MPI_TAG, 1);
    } else if (lt_rank == 1) {
        static const int tags[] = {1, 2, 2, 2, 2}, values[] = {10, 20, 21, 22, 23};
        int go;
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 5; i++)
            OK(MPI_Send(&values[i], 1, MPI_INT, 0, tags[i], MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Many unexpected messages with distinct tags, taken in a scattered order. */
static void many_unexpected(void)
{
    enum { N = 3000, STEP = 1009 };
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    static int values[N];
    static MPI_Request requests[N];
    for (int i = 0; i < N; i++) {
        values[i] = lt_rank * N + i;
        OK(MPI_Isend(&values[i], 1, MPI_INT, to, i, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) {
        int tag = (int)((long)i * STEP % N), got = -1;
        OK(MPI_Recv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_INT(got, from * N + tag);
    }
    OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
}

LT_MAIN("p2p_match", TEST(any_source), TEST(no_overtaking), TEST(by_tag_in_reverse), TEST(tag_limits), TEST(probe),
        TEST(probe_respects_order), TEST(matched_probe), TEST(proc_null), TEST(contexts_are_apart), TEST(truncation),
        TEST(self_messages), TEST(posted_order_with_wildcards), TEST(many_unexpected))
