/* Send modes x blocking, non-blocking, persistent, and the combined send-receives: MPI-5
 * sections 3.2, 3.4, 3.7, 3.9, 3.10.
 *
 * Every transfer goes around a ring (to itself when there is one rank), over the world, a duplicate and a reversed
 * split of it.
 */
#include "limosa_test.h"

static const int sizes[] = {0, 1, 7, 8, 63, 64, 65, 1000, 4096, 16383, 16384, 16385, 65536, 100000, 300001};
enum { N_SIZES = sizeof sizes / sizeof *sizes, MAX_BYTES = 300001 };

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int send_c_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_c_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const struct mode {
    const char *name;
    send_fn *send;
    isend_fn *isend, *init;
    send_c_fn *send_c;
    isend_c_fn *isend_c, *init_c;
} modes[] = {
    {"standard", MPI_Send, MPI_Isend, MPI_Send_init, MPI_Send_c, MPI_Isend_c, MPI_Send_init_c},
    {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init, MPI_Bsend_c, MPI_Ibsend_c, MPI_Bsend_init_c},
    {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init, MPI_Ssend_c, MPI_Issend_c, MPI_Ssend_init_c},
    {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init, MPI_Rsend_c, MPI_Irsend_c, MPI_Rsend_init_c},
};
enum { MODES = 4 };

static unsigned char *out, *in;
static int rank, size, to, from;
static MPI_Comm comm;

static uint64_t seed(int sender, int what)
{
    return (uint64_t)(sender * 997 + what);
}

static void use(MPI_Comm with)
{
    comm = with;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
}

static void blocking_modes(void)
{
    for (int m = 0; m < MODES; m++) {
        for (int s = 0; s < N_SIZES; s++) {
            for (int large = 0; large < 2; large++) {
                MPI_Request request;
                MPI_Status status;
                lt_fill(out, (size_t)sizes[s], seed(rank, s));
                memset(in, 0, (size_t)sizes[s] + 8);
                OK(large ? MPI_Irecv_c(in, sizes[s] + 8, MPI_BYTE, from, s, comm, &request)
                         : MPI_Irecv(in, sizes[s] + 8, MPI_BYTE, from, s, comm, &request));
                OK(MPI_Barrier(comm));
                OK(large ? modes[m].send_c(out, sizes[s], MPI_BYTE, to, s, comm)
                         : modes[m].send(out, sizes[s], MPI_BYTE, to, s, comm));
                OK(MPI_Wait(&request, &status));
                CHECK_PTR(request, MPI_REQUEST_NULL);
                CHECK_STATUS(&status, from, s, MPI_BYTE, sizes[s]);
                CHECK_FILLED(in, (size_t)sizes[s], seed(from, s));
                CHECK_BYTES(in + sizes[s], "\0\0\0\0\0\0\0\0", 8);
            }
        }
    }
}

static void nonblocking_modes(void)
{
    for (int m = 0; m < MODES; m++) {
        for (int s = 0; s < N_SIZES; s++) {
            for (int large = 0; large < 2; large++) {
                MPI_Request requests[2];
                MPI_Status statuses[2];
                lt_fill(out, (size_t)sizes[s], seed(rank, s + 50));
                OK(MPI_Irecv(in, sizes[s], MPI_BYTE, from, 5, comm, &requests[0]));
                OK(MPI_Barrier(comm));
                OK(large ? modes[m].isend_c(out, sizes[s], MPI_BYTE, to, 5, comm, &requests[1])
                         : modes[m].isend(out, sizes[s], MPI_BYTE, to, 5, comm, &requests[1]));
                OK(MPI_Waitall(2, requests, statuses));
                CHECK_STATUS(&statuses[0], from, 5, MPI_BYTE, sizes[s]);
                CHECK_FILLED(in, (size_t)sizes[s], seed(from, s + 50));
            }
        }
    }
}

static void persistent_modes(void)
{
    for (int m = 0; m < MODES; m++) {
        for (int s = 0; s < N_SIZES; s += 2) {
            MPI_Request requests[2];
            OK(MPI_Recv_init(in, sizes[s], MPI_BYTE, from, 6, comm, &requests[0]));
            OK(s % 4 ? modes[m].init_c(out, sizes[s], MPI_BYTE, to, 6, comm, &requests[1])
                     : modes[m].init(out, sizes[s], MPI_BYTE, to, 6, comm, &requests[1]));
            for (int round = 0; round < 3; round++) {
                MPI_Status statuses[2];
                MPI_Request kept[2] = {requests[0], requests[1]};
                lt_fill(out, (size_t)sizes[s], seed(rank, s + round));
                OK(MPI_Start(&requests[0]));
                OK(MPI_Barrier(comm));
                OK(round == 1 ? MPI_Startall(1, &requests[1]) : MPI_Start(&requests[1]));
                OK(MPI_Waitall(2, requests, statuses));
                CHECK_PTR(requests[0], kept[0]);
                CHECK_PTR(requests[1], kept[1]);
                CHECK_STATUS(&statuses[0], from, 6, MPI_BYTE, sizes[s]);
                CHECK_FILLED(in, (size_t)sizes[s], seed(from, s + round));
            }
            OK(MPI_Request_free(&requests[0]));
            OK(MPI_Request_free(&requests[1]));
            CHECK_PTR(requests[0], MPI_REQUEST_NULL);
        }
    }
}

static void sendrecv(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Status status;
        lt_fill(out, (size_t)sizes[s], seed(rank, s));
        OK(MPI_Sendrecv(out, sizes[s], MPI_BYTE, to, 3, in, MAX_BYTES, MPI_BYTE, from, 3, comm, &status));
        CHECK_STATUS(&status, from, 3, MPI_BYTE, sizes[s]);
        CHECK_FILLED(in, (size_t)sizes[s], seed(from, s));
        OK(MPI_Sendrecv_c(out, sizes[s], MPI_BYTE, to, 4, in, MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                          &status));
        CHECK_STATUS(&status, from, 4, MPI_BYTE, sizes[s]);
        OK(MPI_Barrier(comm));
    }
}

/* The receive may take less than is sent to the partner, and the tags may differ. */
static void sendrecv_unequal(void)
{
    MPI_Status status;
    int n = 100 * (rank + 1);
    lt_fill(out, (size_t)n, seed(rank, 1));
    OK(MPI_Sendrecv(out, n, MPI_BYTE, to, rank, in, 100 * (from + 1), MPI_BYTE, from, from, comm, &status));
    CHECK_STATUS(&status, from, from, MPI_BYTE, 100 * (from + 1));
    CHECK_FILLED(in, (size_t)(100 * (from + 1)), seed(from, 1));
}

static void sendrecv_replace(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        for (int large = 0; large < 2; large++) {
            MPI_Status status;
            lt_fill(out, (size_t)sizes[s], seed(rank, s));
            OK(large ? MPI_Sendrecv_replace_c(out, sizes[s], MPI_BYTE, to, 3, from, 3, comm, &status)
                     : MPI_Sendrecv_replace(out, sizes[s], MPI_BYTE, to, 3, from, 3, comm, &status));
            CHECK_STATUS(&status, from, 3, MPI_BYTE, sizes[s]);
            CHECK_FILLED(out, (size_t)sizes[s], seed(from, s));
        }
    }
}

static void sendrecv_replace_derived(void)
{
    MPI_Datatype every_other;
    int data[200];
    MPI_Status status;
    for (int i = 0; i < 200; i++)
        data[i] = rank * 1000 + i;
    OK(MPI_Type_vector(100, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Sendrecv_replace(data, 1, every_other, to, 1, from, 1, comm, &status));
    OK(MPI_Type_free(&every_other));
    for (int i = 0; i < 200; i++)
        CHECK_INT(data[i], (i % 2 ? rank : from) * 1000 + i);
}

/* The status of a non-blocking send-receive is that of its receive. */
static void isendrecv(void)
{
    for (int s = 0; s < N_SIZES; s++) {
        MPI_Status status;
        MPI_Request request;
        lt_fill(out, (size_t)sizes[s], seed(rank, s));
        OK(MPI_Isendrecv(out, sizes[s], MPI_BYTE, to, 3, in, MAX_BYTES, MPI_BYTE, from, 3, comm, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_PTR(request, MPI_REQUEST_NULL);
        CHECK_STATUS(&status, from, 3, MPI_BYTE, sizes[s]);
        CHECK_FILLED(in, (size_t)sizes[s], seed(from, s));
        OK(MPI_Isendrecv_replace(out, sizes[s], MPI_BYTE, to, 3, from, 3, comm, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(&status, from, 3, MPI_BYTE, sizes[s]);
        CHECK_FILLED(out, (size_t)sizes[s], seed(from, s));
        OK(MPI_Isendrecv_c(out, sizes[s], MPI_BYTE, to, 3, in, MAX_BYTES, MPI_BYTE, from, 3, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Isendrecv_replace_c(out, sizes[s], MPI_BYTE, to, 3, from, 3, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_FILLED(out, (size_t)sizes[s], seed((rank + 2 * size - 2) % size, s));
    }
}

/* A synchronous send does not complete before its receive has started (section 3.4). */
static void synchronous_waits(void)
{
    MPI_Request requests[3];
    int flag = 1, token = 7, got = 0;
    OK(MPI_Issend(&token, 1, MPI_INT, to, 9, comm, &requests[0]));
    for (int i = 0; i < 100; i++) {
        OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
        CHECK_INT(flag, 0);
    }
    OK(MPI_Barrier(comm));
    OK(MPI_Irecv(&got, 1, MPI_INT, from, 9, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(got, 7);
}

/* A buffered send completes without its receiver, also when it is large. */
static void buffered_is_local(void)
{
    lt_fill(out, MAX_BYTES, seed(rank, 2));
    OK(MPI_Bsend(out, MAX_BYTES, MPI_BYTE, to, 8, comm));
    memset(out, 0, MAX_BYTES);
    OK(MPI_Barrier(comm));
    MPI_Status status;
    OK(MPI_Recv(in, MAX_BYTES, MPI_BYTE, from, 8, comm, &status));
    CHECK_STATUS(&status, from, 8, MPI_BYTE, MAX_BYTES);
    CHECK_FILLED(in, MAX_BYTES, seed(from, 2));
}

static void all_modes(void)
{
    blocking_modes();
    nonblocking_modes();
    persistent_modes();
    sendrecv();
    sendrecv_unequal();
    sendrecv_replace();
    sendrecv_replace_derived();
    isendrecv();
    synchronous_waits();
    buffered_is_local();
}

static void on_world(void)
{
    use(MPI_COMM_WORLD);
    all_modes();
}

static void on_self(void)
{
    use(MPI_COMM_SELF);
    all_modes();
}

static void on_duplicate(void)
{
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    use(dup);
    sendrecv();
    nonblocking_modes();
    OK(MPI_Comm_free(&dup));
}

static void on_reversed(void)
{
    MPI_Comm reversed;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -lt_rank, &reversed));
    use(reversed);
    CHECK_INT(rank, lt_size - 1 - lt_rank);
    sendrecv();
    blocking_modes();
    OK(MPI_Comm_free(&reversed));
}

static void attach(void)
{
    int n = 4 * (MAX_BYTES + MPI_BSEND_OVERHEAD);
    out = lt_alloc(MAX_BYTES);
    in = lt_alloc(MAX_BYTES + 8);
    OK(MPI_Buffer_attach(lt_alloc((size_t)n), n));
}

static void detach(void)
{
    void *buffer;
    int n;
    OK(MPI_Buffer_detach(&buffer, &n));
    CHECK_INT(n, 4 * (MAX_BYTES + MPI_BSEND_OVERHEAD));
    free(buffer);
    free(out);
    free(in);
}

LT_MAIN("p2p_modes", TEST(attach), TEST(on_world), TEST(on_self), TEST(on_duplicate), TEST(on_reversed), TEST(detach))
