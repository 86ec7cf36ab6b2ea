/* Buffered sends: the buffer of the process, of a communicator, and the automatic one: MPI-5 section 3.6. */
#include "limosa_test.h"

enum { BYTES = 1000, COUNT = 5 };
static int to, from;

static void setup(void)
{
    to = (lt_rank + 1) % lt_size;
    from = (lt_rank + lt_size - 1) % lt_size;
}

static void send_all(MPI_Comm comm)
{
    unsigned char out[BYTES];
    for (int i = 0; i < COUNT; i++) {
        lt_fill(out, BYTES, (uint64_t)(lt_rank + i));
        OK(MPI_Bsend(out, BYTES, MPI_BYTE, to, i, comm));
    }
}

static void receive_all(MPI_Comm comm)
{
    unsigned char in[BYTES];
    MPI_Status status;
    for (int i = 0; i < COUNT; i++) {
        OK(MPI_Recv(in, BYTES, MPI_BYTE, from, i, comm, &status));
        CHECK_STATUS(&status, from, i, MPI_BYTE, BYTES);
        CHECK_FILLED(in, BYTES, (uint64_t)(from + i));
    }
}

/* A buffer computed as the standard tells, from MPI_Pack_size and MPI_BSEND_OVERHEAD, holds exactly those messages. */
static void exact_size_is_enough(void)
{
    int packed;
    OK(MPI_Pack_size(BYTES, MPI_BYTE, MPI_COMM_WORLD, &packed));
    int n = COUNT * (packed + MPI_BSEND_OVERHEAD), size = 0;
    void *buffer = lt_alloc((size_t)n), *detached = NULL;
    for (int round = 0; round < 3; round++) {
        OK(MPI_Buffer_attach(buffer, n));
        send_all(MPI_COMM_WORLD);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        receive_all(MPI_COMM_WORLD);
        OK(MPI_Buffer_detach(&detached, &size));
        CHECK_PTR(detached, buffer);
        CHECK_INT(size, n);
    }
    free(buffer);
}

/* The space is used again once messages have left. */
static void space_comes_back(void)
{
    int n = 2 * (BYTES + MPI_BSEND_OVERHEAD), size;
    void *buffer = lt_alloc((size_t)n), *detached;
    unsigned char out[BYTES], in[BYTES];
    OK(MPI_Buffer_attach(buffer, n));
    for (int i = 0; i < 100; i++) {
        lt_fill(out, BYTES, (uint64_t)(lt_rank + i));
        OK(MPI_Bsend(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD));
        OK(MPI_Recv(in, BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_FILLED(in, BYTES, (uint64_t)(from + i));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Buffer_flush());
    }
    OK(MPI_Buffer_detach(&detached, &size));
    free(buffer);
}

static void too_small(void)
{
    static unsigned char out[100000];
    int n = MPI_BSEND_OVERHEAD + 100, size;
    void *buffer = lt_alloc((size_t)n), *detached;
    MPI_Request request;
    OK(MPI_Buffer_attach(buffer, n));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, sizeof out, MPI_BYTE, to, 1, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Ibsend(out, sizeof out, MPI_BYTE, to, 1, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Buffer_attach(lt_alloc(5000), 5000));
    /* What fits still goes. */
    unsigned char in[100];
    OK(MPI_Bsend(out, 100, MPI_BYTE, to, 2, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 100, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&detached, &size));
    CHECK_PTR(detached, buffer);
    free(buffer);
}

static void without_buffer(void)
{
    static unsigned char out[1000];
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, sizeof out, MPI_BYTE, to, 1, MPI_COMM_WORLD));
}

/* Detaching waits until the messages have left, here with a receiver that comes late. */
static void detach_waits_for_delivery(void)
{
    int n = COUNT * (BYTES + MPI_BSEND_OVERHEAD), size;
    void *buffer = lt_alloc((size_t)n), *detached;
    MPI_Request requests[COUNT];
    unsigned char in[COUNT][BYTES];
    OK(MPI_Buffer_attach(buffer, n));
    send_all(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        OK(MPI_Irecv(in[i], BYTES, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Buffer_detach(&detached, &size));
    memset(buffer, 0, (size_t)n);
    OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++)
        CHECK_FILLED(in[i], BYTES, (uint64_t)(from + i));
    free(buffer);
}

static void automatic(void)
{
    void *detached = NULL;
    int size = -1;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int round = 0; round < 3; round++) {
        send_all(MPI_COMM_WORLD);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        receive_all(MPI_COMM_WORLD);
    }
    OK(MPI_Buffer_detach(&detached, &size));
    CHECK_PTR(detached, MPI_BUFFER_AUTOMATIC);
    CHECK_INT(size, 0);
}

static void of_a_communicator(void)
{
    MPI_Comm dup;
    int n = COUNT * (BYTES + MPI_BSEND_OVERHEAD), size;
    void *buffer = lt_alloc((size_t)n), *detached;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_attach_buffer(dup, buffer, n));
    send_all(dup);
    OK(MPI_Barrier(dup));
    receive_all(dup);
    OK(MPI_Comm_flush_buffer(dup));
    OK(MPI_Comm_detach_buffer(dup, &detached, &size));
    CHECK_PTR(detached, buffer);
    CHECK_INT(size, n);
    OK(MPI_Comm_attach_buffer(dup, MPI_BUFFER_AUTOMATIC, 0));
    send_all(dup);
    OK(MPI_Barrier(dup));
    receive_all(dup);
    OK(MPI_Comm_detach_buffer(dup, &detached, &size));
    CHECK_PTR(detached, MPI_BUFFER_AUTOMATIC);
    OK(MPI_Comm_free(&dup));
    free(buffer);
}

static void flush(void)
{
    int n = COUNT * (BYTES + MPI_BSEND_OVERHEAD), size;
    void *buffer = lt_alloc((size_t)n), *detached;
    MPI_Request requests[COUNT], flushed;
    unsigned char in[COUNT][BYTES];
    OK(MPI_Buffer_attach(buffer, n));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            OK(MPI_Irecv(in[i], BYTES, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[i]));
        send_all(MPI_COMM_WORLD);
        if (round) {
            OK(MPI_Buffer_iflush(&flushed));
            OK(MPI_Wait(&flushed, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Buffer_flush());
        }
        OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < COUNT; i++)
            CHECK_FILLED(in[i], BYTES, (uint64_t)(from + i));
    }
    OK(MPI_Buffer_detach(&detached, &size));
    free(buffer);
}

static void large_count(void)
{
    MPI_Count n = COUNT * (BYTES + MPI_BSEND_OVERHEAD), size;
    void *buffer = lt_alloc((size_t)n), *detached;
    OK(MPI_Buffer_attach_c(buffer, n));
    send_all(MPI_COMM_WORLD);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    receive_all(MPI_COMM_WORLD);
    OK(MPI_Buffer_detach_c(&detached, &size));
    CHECK_PTR(detached, buffer);
    CHECK_INT(size, n);
    free(buffer);
}

/* A flush that is begun returns at once, also while a message cannot leave the buffer, and is complete when all have.
 */
static void begun_flush(void)
{
    enum { LONG = 4 << 20 };
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size, size, flag;
    if (lt_size == 1)
        return;
    char *out = lt_alloc(LONG), *in = lt_alloc(LONG), *buffer = lt_alloc(LONG + MPI_BSEND_OVERHEAD);
    void *detached;
    MPI_Request flush;
    memset(out, lt_rank + 1, LONG);
    OK(MPI_Buffer_attach(buffer, LONG + MPI_BSEND_OVERHEAD));
    OK(MPI_Bsend(out, LONG, MPI_BYTE, to, 5, MPI_COMM_WORLD));
    OK(MPI_Buffer_iflush(&flush));
    OK(MPI_Test(&flush, &flag, MPI_STATUS_IGNORE));
    /* No rank receives before all have come here. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Recv(in, LONG, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(in[LONG - 1], from + 1);
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    CHECK(flush == MPI_REQUEST_NULL);
    OK(MPI_Bsend(out, LONG, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD));
    OK(MPI_Buffer_iflush(&flush));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&detached, &size));
    free(buffer), free(in), free(out);
}

LT_MAIN("p2p_bsend", TEST(setup), TEST(without_buffer), TEST(exact_size_is_enough), TEST(space_comes_back),
        TEST(too_small), TEST(detach_waits_for_delivery), TEST(automatic), TEST(of_a_communicator), TEST(flush),
        TEST(large_count), TEST(begun_flush))
