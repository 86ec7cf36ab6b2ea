/* What calls on requests do with collective operations and combined sends and receives under way: MPI-5
 * sections 3.7, 3.8.4, 6.12 and 6.13.
 *
 * Rank 0 joins each operation last, so that it cannot be complete on any rank while the others look at it. */
#include "limosa_test.h"

enum { SMALL = 8, LARGE = 300000 };

/* The others tell rank 0 that they have looked; rank 0 waits for that. */
static void others_first(void)
{
    for (int other = 1; lt_rank == 0 && other < lt_size; other++)
        OK(MPI_Recv(NULL, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void have_looked(void)
{
    if (lt_rank != 0)
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
}

static void check_sums(const int *sums, int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += sums[i] != lt_size * (lt_size - 1) / 2 + lt_size * i;
    CHECK_INT(wrong, 0);
}

/* Looks at a request that cannot be complete, then waits by looking; the request stays. */
static void look_at(MPI_Request *request)
{
    int flag = -1;
    if (lt_rank != 0) {
        MPI_Request before = *request;
        OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
        CHECK_INT(flag, 0);
        FAILS(MPI_ERR_REQUEST, MPI_Cancel(request));
        FAILS(MPI_ERR_REQUEST, MPI_Request_free(request));
        CHECK_PTR(*request, before);
        have_looked();
    }
    MPI_Status status;
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status(*request, &flag, &status));
    CHECK_INT(status.MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK(*request != MPI_REQUEST_NULL);
}

static void collectives(void)
{
    static int operand[LARGE], sums[LARGE];
    for (int count = SMALL; count <= LARGE; count = count == SMALL ? LARGE : LARGE + 1) {
        MPI_Request request;
        for (int i = 0; i < count; i++)
            operand[i] = lt_rank + i;
        others_first();
        OK(MPI_Iallreduce(operand, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
        look_at(&request);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_PTR(request, MPI_REQUEST_NULL);
        check_sums(sums, count);

        OK(MPI_Allreduce_init(operand, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (int round = 0; round < 3; round++) {
            memset(sums, 0xff, sizeof sums);
            others_first();
            OK(MPI_Start(&request));
            look_at(&request);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            check_sums(sums, count);
        }
        OK(MPI_Request_free(&request));
    }
}

/* Requests that are not persistent cannot be started, whatever they are about. */
static void starting_what_is_not_persistent(void)
{
    MPI_Request request;
    int in = -1;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    OK(MPI_Isendrecv(&lt_rank, 1, MPI_INT, to, 2, &in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(in, from);
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 3, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Send(&lt_rank, 1, MPI_INT, to, 3, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(in, from);
}

static void combined_transfers(void)
{
    MPI_Request request;
    MPI_Status status;
    int in = -1, flag = -1, to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    others_first();
    OK(MPI_Isendrecv(&lt_rank, 1, MPI_INT, to, 4, &in, 1, MPI_INT, from, 4, MPI_COMM_WORLD, &request));
    /* Of a send and a receive that count as one request neither can be cancelled. */
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&request));
    if (lt_rank == 1) {
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
        CHECK_INT(flag, 0);
        FAILS(MPI_ERR_REQUEST, MPI_Request_free(&request));
    }
    have_looked();
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status(request, &flag, &status));
    CHECK_INT(status.MPI_SOURCE, from);
    CHECK_INT(status.MPI_TAG, 4);
    OK(MPI_Wait(&request, &status));
    CHECK_INT(status.MPI_SOURCE, from);
    CHECK_INT(in, from);
}

LT_MAIN("coll_requests", TEST(collectives), TEST(starting_what_is_not_persistent), TEST(combined_transfers))
