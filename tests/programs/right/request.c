/* Correct programs: requests. Nothing may be reported about them. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];

static void exchange(void)
{
    MPI_Request both[2];
    MPI_Irecv(y, 8, MPI_INT, 1 - rank, 0, WORLD, &both[0]);
    MPI_Isend(x, 8, MPI_INT, 1 - rank, 0, WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void test_loop(void)
{
    MPI_Request request;
    int flag = 0, turns = 0;
    if (rank == 0) {
        MPI_Irecv(y, 1, MPI_INT, 1, 0, WORLD, &request);
        for (; !flag; turns++)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } else {
        nap(4);
        MPI_Send(x, 1, MPI_INT, 0, 0, WORLD);
    }
}

static void test_loop_that_computes(void)
{
    MPI_Request request;
    int flag = 0;
    if (rank == 0) {
        MPI_Irecv(y, 1, MPI_INT, 1, 0, WORLD, &request);
        for (; !flag; compute(0.05))
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } else {
        nap(3);
        MPI_Send(x, 1, MPI_INT, 0, 0, WORLD);
    }
}

static void both_in_test_loops(void)
{
    MPI_Request request;
    int flag = 0;
    double end = MPI_Wtime() + 3;
    MPI_Irecv(y, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    while (!flag || end > 0) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (end > 0 && MPI_Wtime() > end) {
            MPI_Send(x, 1, MPI_INT, 1 - rank, 0, WORLD);
            end = -1;
        }
    }
}

static void wait_for_any_of_many(void)
{
    MPI_Request all[32];
    int at;
    for (int i = 0; i < 32; i++)
        if (rank == 0)
            MPI_Irecv(y + i, 1, MPI_INT, 1, i, WORLD, &all[i]);
        else
            MPI_Isend(x, 1, MPI_INT, 0, 31 - i, WORLD, &all[i]);
    for (int i = 0; i < 32; i++)
        MPI_Waitany(32, all, &at, MPI_STATUS_IGNORE);
    MPI_Waitany(32, all, &at, MPI_STATUS_IGNORE);
    EXPECT(at, MPI_UNDEFINED);
}

static void null_requests(void)
{
    MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag = 0;
    MPI_Wait(&none[0], MPI_STATUS_IGNORE);
    MPI_Waitall(3, none, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(3, none, &flag, MPI_STATUSES_IGNORE);
    EXPECT(flag, 1);
}

static void request_freed_under_way(void)
{
    /* A send may be freed before it is complete: it goes on. */
    MPI_Request request;
    int token = 0;
    if (rank == 0) {
        MPI_Isend(x, 64, MPI_INT, 1, 0, WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(&token, 1, MPI_INT, 1, 1, WORLD, ANY);
    } else {
        nap(0.2);
        MPI_Recv(y, 64, MPI_INT, 0, 0, WORLD, ANY);
        MPI_Send(&token, 1, MPI_INT, 0, 1, WORLD);
    }
}

static void cancelled_receive(void)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(y, 1, MPI_INT, 1 - rank, 99, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(cancelled, 1);
}

static void persistent_exchange(void)
{
    MPI_Request both[2];
    MPI_Recv_init(y, 8, MPI_INT, 1 - rank, 0, WORLD, &both[0]);
    MPI_Send_init(x, 8, MPI_INT, 1 - rank, 0, WORLD, &both[1]);
    for (int i = 0; i < 100; i++) {
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

static void persistent_request_that_never_starts(void)
{
    MPI_Request request;
    MPI_Recv_init(y, 8, MPI_INT, 1 - rank, 0, WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void large_messages_in_the_background(void)
{
    size_t n = 8 << 20;
    char *out = zeros(n), *in = zeros(n);
    MPI_Request both[2];
    MPI_Irecv(in, (int)n, MPI_CHAR, 1 - rank, 0, WORLD, &both[0]);
    MPI_Isend(out, (int)n, MPI_CHAR, 1 - rank, 0, WORLD, &both[1]);
    compute(rank == 0 ? 3 : 0);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
}

static void slow_partner_in_waitall(void)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(y, 1, MPI_INT, 1, 0, WORLD, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    } else {
        compute(4);
        MPI_Ssend(x, 1, MPI_INT, 0, 0, WORLD);
    }
}

static void probe_then_receive_of_unknown_length(void)
{
    MPI_Status status;
    int n;
    if (rank == 0) {
        MPI_Send(x, 17, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Probe(0, MPI_ANY_TAG, WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &n);
        EXPECT(n, 17);
        MPI_Recv(y, n, MPI_INT, 0, status.MPI_TAG, WORLD, ANY);
    }
}

CASES(MPI_THREAD_SINGLE, CASE(exchange), CASE(test_loop), CASE(test_loop_that_computes), CASE(both_in_test_loops),
      CASE(wait_for_any_of_many), CASE(null_requests), CASE(request_freed_under_way), CASE(cancelled_receive),
      CASE(persistent_exchange), CASE(persistent_request_that_never_starts), CASE(large_messages_in_the_background),
      CASE(slow_partner_in_waitall), CASE(probe_then_receive_of_unknown_length))
