/* Wrong programs: requests, and non-blocking and persistent operations (MPI-5 sections 3.7 to 3.9, 6.12 to 6.13). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];
static MPI_Request request;

static void wait_for(MPI_Request *one)
{
    MPI_Wait(one, MPI_STATUS_IGNORE);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void request_waited_for_twice(void)
{
    MPI_Request copy;
    MPI_Irecv(y, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    copy = request;
    MPI_Send(x, 1, MPI_INT, 1 - rank, 0, WORLD);
    wait_for(&request);
    wait_for(&copy);
}

static void request_uninitialised(void)
{
    memset(&request, 0x5a, sizeof request);
    wait_for(&request);
}

static void request_freed(void)
{
    MPI_Request stale;
    MPI_Send_init(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    stale = request;
    MPI_Request_free(&request);
    MPI_Start(&stale);
}

static void communicator_as_request(void)
{
    request = (MPI_Request)MPI_COMM_WORLD;
    wait_for(&request);
}

static void waitall_negative_count(void)
{
    MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE);
}

static void waitall_with_one_truncated(void)
{
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI_Irecv(y, 1, MPI_INT, 1 - rank, 0, WORLD, &both[0]);
    MPI_Irecv(y + 8, 4, MPI_INT, 1 - rank, 1, WORLD, &both[1]);
    MPI_Send(x, 4, MPI_INT, 1 - rank, 0, WORLD);
    MPI_Send(x, 4, MPI_INT, 1 - rank, 1, WORLD);
    MPI_Waitall(2, both, statuses);
}

static void start_of_ordinary_request(void)
{
    MPI_Irecv(y, 1, MPI_INT, rank, 0, WORLD, &request);
    MPI_Start(&request);
    MPI_Send(x, 1, MPI_INT, rank, 0, WORLD);
    wait_for(&request);
}

static void start_twice(void)
{
    MPI_Recv_init(y, 1, MPI_INT, rank, 0, WORLD, &request);
    MPI_Start(&request);
    MPI_Start(&request);
    MPI_Send(x, 1, MPI_INT, rank, 0, WORLD);
    wait_for(&request);
    MPI_Request_free(&request);
}

static void start_null(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Start(&request);
}

static void cancel_null(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Cancel(&request);
}

static void cancel_collective(void)
{
    MPI_Ibarrier(WORLD, &request);
    MPI_Cancel(&request);
    wait_for(&request);
}

static void free_active_collective(void)
{
    MPI_Request copy;
    MPI_Ibarrier(WORLD, &request);
    copy = request;
    MPI_Request_free(&copy);
    wait_for(&request);
}

static void free_null(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Request_free(&request);
}

static void complete_of_ordinary_request(void)
{
    MPI_Irecv(y, 1, MPI_INT, rank, 0, WORLD, &request);
    MPI_Grequest_complete(request);
    MPI_Send(x, 1, MPI_INT, rank, 0, WORLD);
    wait_for(&request);
}

static void pready_of_ordinary_request(void)
{
    MPI_Irecv(y, 1, MPI_INT, rank, 0, WORLD, &request);
    MPI_Pready(0, request);
    MPI_Send(x, 1, MPI_INT, rank, 0, WORLD);
    wait_for(&request);
}

static void request_overwritten(void)
{
    /* The first request is lost: its receive can never be completed. */
    MPI_Irecv(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    MPI_Irecv(y, 1, MPI_INT, 1 - rank, 1, WORLD, &request);
    MPI_Send(x, 1, MPI_INT, 1 - rank, 1, WORLD);
    wait_for(&request);
}

static void send_never_completed(void)
{
    MPI_Isend(x, 1, MPI_INT, 1 - rank, 3, WORLD, &request);
    MPI_Recv(y, 1, MPI_INT, 1 - rank, 3, WORLD, ANY);
}

static void receive_never_completed(void)
{
    MPI_Irecv(x, 1, MPI_INT, 1 - rank, 55, WORLD, &request);
}

static void collective_never_completed(void)
{
    MPI_Iallreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD, &request);
    MPI_Barrier(WORLD);
}

static void persistent_request_never_freed(void)
{
    MPI_Send_init(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
}

static void wait_before_send(void)
{
    MPI_Irecv(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    wait_for(&request);
    MPI_Send(x, 1, MPI_INT, 1 - rank, 0, WORLD);
}

static void waitall_of_receives_before_sends(void)
{
    MPI_Request all[2];
    for (int i = 0; i < 2; i++)
        MPI_Irecv(x + i, 1, MPI_INT, 1 - rank, i, WORLD, &all[i]);
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Send(y, 1, MPI_INT, 1 - rank, i, WORLD);
}

static void test_loop_for_a_message_that_never_comes(void)
{
    int flag = 0;
    MPI_Irecv(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void persistent_receive_not_served(void)
{
    MPI_Recv_init(x, 1, MPI_INT, 1 - rank, 4, WORLD, &request);
    MPI_Start(&request);
    wait_for(&request);
    MPI_Request_free(&request);
}

static void change_of_buffer_under_way(void)
{
    MPI_Isend(x, 1, MPI_INT, 1 - rank, 0, WORLD, &request);
    x[0] = 7;
    MPI_Recv(y, 1, MPI_INT, 1 - rank, 0, WORLD, ANY);
    wait_for(&request);
}

/* --- collectives in the background -------------------------------------------------------------------------------- */

static void iroot_beyond_the_end(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Ibcast(x, 1, MPI_INT, size, WORLD, &request);
    wait_for(&request);
}

static void icount_negative(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Iallreduce(x, y, -1, MPI_INT, MPI_SUM, WORLD, &request);
    wait_for(&request);
}

static void iop_null(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Ireduce(x, y, 1, MPI_INT, MPI_OP_NULL, 0, WORLD, &request);
    wait_for(&request);
}

static void iallreduce_same_buffer(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Iallreduce(x, x, 4, MPI_INT, MPI_SUM, WORLD, &request);
    wait_for(&request);
}

static void allreduce_init_same_buffer(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Allreduce_init(x, x, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    if (request != MPI_REQUEST_NULL)
        MPI_Start(&request), wait_for(&request);
}

static void ibcast_in_place(void)
{
    request = MPI_REQUEST_NULL;
    MPI_Ibcast(MPI_IN_PLACE, 4, MPI_INT, 0, WORLD, &request);
    wait_for(&request);
}

static void ibcast_roots_differ(void)
{
    MPI_Ibcast(x, 4, MPI_INT, rank == 1, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void ireduce_roots_differ(void)
{
    MPI_Ireduce(x, y, 4, MPI_INT, MPI_SUM, rank == 1, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void igather_roots_differ(void)
{
    MPI_Igather(x, 2, MPI_INT, y, 2, MPI_INT, rank == 1, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void iscatter_roots_differ(void)
{
    MPI_Iscatter(x, 2, MPI_INT, y, 2, MPI_INT, rank == 1, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void bcast_init_roots_differ(void)
{
    MPI_Bcast_init(x, 4, MPI_INT, rank == 1, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    wait_for(&request);
    MPI_Request_free(&request);
    MPI_Barrier(WORLD);
}

static void iallreduce_operations_differ(void)
{
    MPI_Iallreduce(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void allreduce_init_operations_differ(void)
{
    MPI_Allreduce_init(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    wait_for(&request);
    MPI_Request_free(&request);
    MPI_Barrier(WORLD);
}

static void iallreduce_lengths_differ(void)
{
    MPI_Iallreduce(x, y, rank == 1 ? 4 : 8, MPI_INT, MPI_SUM, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void ibcast_lengths_differ(void)
{
    MPI_Ibcast(x, rank == 1 ? 4 : 8, MPI_INT, 0, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void igather_lengths_differ(void)
{
    MPI_Igather(x, rank == 1 ? 4 : 2, MPI_INT, y, 2, MPI_INT, 0, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void ialltoall_lengths_differ(void)
{
    int n = rank == 1 ? 4 : 2;
    MPI_Ialltoall(x, n, MPI_INT, y, n, MPI_INT, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void ibarrier_against_ibcast(void)
{
    if (rank == 0)
        MPI_Ibarrier(WORLD, &request);
    else
        MPI_Ibcast(x, 4, MPI_INT, 0, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void iallgather_against_ialltoall(void)
{
    if (rank == 0)
        MPI_Iallgather(x, 2, MPI_INT, y, 2, MPI_INT, WORLD, &request);
    else
        MPI_Ialltoall(x, 2, MPI_INT, y, 2, MPI_INT, WORLD, &request);
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void order_of_starts_differs(void)
{
    MPI_Request both[2];
    if (rank == 0) {
        MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD, &both[0]);
        MPI_Ibcast(x + 8, 4, MPI_INT, 0, WORLD, &both[1]);
    } else {
        MPI_Ibcast(x + 8, 4, MPI_INT, 0, WORLD, &both[0]);
        MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD, &both[1]);
    }
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Barrier(WORLD);
}

static void nonblocking_against_blocking(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Iallreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD, &request);
        wait_for(&request);
    } else {
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
    }
}

static void ibarrier_that_one_rank_forgets(void)
{
    if (rank == 0) {
        MPI_Ibarrier(WORLD, &request);
        wait_for(&request);
    }
}

static void test_loop_for_a_collective_that_one_rank_forgets(void)
{
    int flag = 0;
    if (rank == 0) {
        MPI_Ibarrier(WORLD, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(x, 1, MPI_INT, 0, 0, WORLD, ANY);
    }
}

static void persistent_collective_not_started_everywhere(void)
{
    MPI_Barrier_init(WORLD, MPI_INFO_NULL, &request);
    if (rank == 0) {
        MPI_Start(&request);
        wait_for(&request);
    }
    MPI_Request_free(&request);
    MPI_Barrier(WORLD);
}

static void communicator_freed_with_requests(void)
{
    /* Legal: the communicator goes when its operations are complete; but one rank forgets to take part. */
    MPI_Comm dup;
    MPI_Comm_dup(WORLD, &dup);
    if (rank == 0)
        MPI_Ibarrier(dup, &request);
    MPI_Comm_free(&dup);
    if (rank == 0)
        wait_for(&request);
}

/* --- a blocking operation on one rank, one in the background on its partner, which does something else
 * ----------------
 */

static void barrier_against_ibarrier_of_a_rank_that_computes(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Barrier(WORLD);
    } else {
        MPI_Ibarrier(WORLD, &request);
        compute(2);
        wait_for(&request);
    }
}

static void allreduce_against_iallreduce_of_a_rank_that_receives(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
        MPI_Send(x, 1, MPI_INT, 1, 8, WORLD);
    } else {
        MPI_Iallreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD, &request);
        MPI_Recv(y + 4, 1, MPI_INT, 0, 8, WORLD, ANY);
        wait_for(&request);
    }
}

static void ibcast_against_bcast_of_a_root_that_goes_on(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Ibcast(x, 1, MPI_INT, 1, WORLD, &request);
        wait_for(&request);
        MPI_Send(x, 1, MPI_INT, 1, 8, WORLD);
    } else {
        MPI_Bcast(x, 1, MPI_INT, 1, WORLD);
        compute(2);
        MPI_Recv(y, 1, MPI_INT, 0, 8, WORLD, ANY);
    }
}

static void polled_ibcast_against_bcast_of_a_root_that_goes_on(void)
{
    int done = 0;
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Ibcast(x, 1, MPI_INT, 1, WORLD, &request);
        while (!done)
            if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                break;
        MPI_Send(x, 1, MPI_INT, 1, 8, WORLD);
    } else {
        MPI_Bcast(x, 1, MPI_INT, 1, WORLD);
        compute(2);
        MPI_Recv(y, 1, MPI_INT, 0, 8, WORLD, ANY);
    }
}

/* The others have completed their part when rank 0 comes, which reads none. */
static void iscan_of_a_late_rank_against_iscatter(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        compute(0.2);
        MPI_Iscan(x, y, 1, MPI_INT, MPI_SUM, WORLD, &request);
    } else {
        MPI_Iscatter(x, 1, MPI_INT, y, 1, MPI_INT, size - 1, WORLD, &request);
    }
    wait_for(&request);
    MPI_Barrier(WORLD);
}

static void polled_ibarrier_against_barrier(void)
{
    int done = 0;
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Ibarrier(WORLD, &request);
        while (!done)
            if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                break;
    } else {
        MPI_Barrier(WORLD);
    }
}

static void barrier_against_a_persistent_barrier(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Barrier(WORLD);
    } else {
        MPI_Barrier_init(WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        compute(2);
        wait_for(&request);
    }
}

CASES(MPI_THREAD_SINGLE, CASE(barrier_against_ibarrier_of_a_rank_that_computes),
      CASE(allreduce_against_iallreduce_of_a_rank_that_receives), CASE(ibcast_against_bcast_of_a_root_that_goes_on),
      CASE(polled_ibcast_against_bcast_of_a_root_that_goes_on), CASE(polled_ibarrier_against_barrier),
      CASE(iscan_of_a_late_rank_against_iscatter), CASE(barrier_against_a_persistent_barrier),
      CASE(request_waited_for_twice), CASE(request_uninitialised), CASE(request_freed), CASE(communicator_as_request),
      CASE(waitall_negative_count), CASE(waitall_with_one_truncated), CASE(start_of_ordinary_request),
      CASE(start_twice), CASE(start_null), CASE(cancel_null), CASE(cancel_collective), CASE(free_active_collective),
      CASE(free_null), CASE(complete_of_ordinary_request), CASE(pready_of_ordinary_request), CASE(request_overwritten),
      CASE(send_never_completed), CASE(receive_never_completed), CASE(collective_never_completed),
      CASE(persistent_request_never_freed), CASE(wait_before_send), CASE(waitall_of_receives_before_sends),
      CASE(test_loop_for_a_message_that_never_comes), CASE(persistent_receive_not_served),
      CASE(change_of_buffer_under_way), CASE(iroot_beyond_the_end), CASE(icount_negative), CASE(iop_null),
      CASE(iallreduce_same_buffer), CASE(allreduce_init_same_buffer), CASE(ibcast_in_place), CASE(ibcast_roots_differ),
      CASE(ireduce_roots_differ), CASE(igather_roots_differ), CASE(iscatter_roots_differ),
      CASE(bcast_init_roots_differ), CASE(iallreduce_operations_differ), CASE(allreduce_init_operations_differ),
      CASE(iallreduce_lengths_differ), CASE(ibcast_lengths_differ), CASE(igather_lengths_differ),
      CASE(ialltoall_lengths_differ), CASE(ibarrier_against_ibcast), CASE(iallgather_against_ialltoall),
      CASE(order_of_starts_differs), CASE(nonblocking_against_blocking), CASE(ibarrier_that_one_rank_forgets),
      CASE(test_loop_for_a_collective_that_one_rank_forgets), CASE(persistent_collective_not_started_everywhere),
      CASE(communicator_freed_with_requests))
