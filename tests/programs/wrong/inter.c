/* Wrong programs: intercommunicators (MPI-5 sections 6.2.2 and 7.6). The groups are the halves of four ranks. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm half, between, made;
static int x[8], y[64];

/* Makes the halves. */
static void split(void)
{
    MPI_Comm_split(WORLD, rank / 2, 0, &half);
}

/* Makes the intercommunicator of the halves. */
static void connect_halves(void)
{
    split();
    MPI_Intercomm_create(half, 0, WORLD, rank < 2 ? 2 : 0, 9, &between);
}

static void end(void)
{
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* --- making one --------------------------------------------------------------------------------------------------- */

static void remote_leader_is_the_local_one(void)
{
    split();
    MPI_Intercomm_create(half, 0, WORLD, rank < 2 ? 0 : 2, 9, &between);
    MPI_Comm_free(&half);
}

static void remote_leader_is_of_the_own_group(void)
{
    split();
    MPI_Intercomm_create(half, 0, WORLD, rank < 2 ? 1 : 3, 9, &between);
    MPI_Comm_free(&half);
}

static void local_leader_beyond_the_end(void)
{
    split();
    MPI_Intercomm_create(half, 7, WORLD, rank < 2 ? 2 : 0, 9, &between);
    MPI_Comm_free(&half);
}

static void tag_negative(void)
{
    split();
    MPI_Intercomm_create(half, 0, WORLD, rank < 2 ? 2 : 0, -4, &between);
    MPI_Comm_free(&half);
}

static void peer_communicator_null(void)
{
    split();
    MPI_Intercomm_create(half, 0, MPI_COMM_NULL, rank < 2 ? 2 : 0, 9, &between);
    MPI_Comm_free(&half);
}

static void made_of_an_intercommunicator(void)
{
    connect_halves();
    MPI_Intercomm_create(between, 0, WORLD, rank < 2 ? 2 : 0, 9, &made);
    end();
}

static void one_group_does_not_come(void)
{
    split();
    if (rank < 2)
        MPI_Intercomm_create(half, 0, WORLD, 2, 9, &between);
    MPI_Comm_free(&half);
}

static void merge_words_differ(void)
{
    connect_halves();
    MPI_Intercomm_merge(between, rank, &made);
    end();
}

static void merge_of_an_intracommunicator(void)
{
    MPI_Intercomm_merge(WORLD, 0, &made);
}

/* --- using one ---------------------------------------------------------------------------------------------------- */

static void destination_of_the_own_group(void)
{
    connect_halves();
    MPI_Send(x, 1, MPI_INT, 3, 1, between);
    end();
}

static void root_beyond_the_end(void)
{
    connect_halves();
    MPI_Bcast(x, 1, MPI_INT, 2, between);
    end();
}

static void nobody_is_the_root(void)
{
    connect_halves();
    MPI_Bcast(x, 1, MPI_INT, 0, between);
    end();
}

static void barrier_against_bcast(void)
{
    connect_halves();
    if (rank == 3)
        MPI_Barrier(between);
    else
        MPI_Bcast(x, 1, MPI_INT, rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0, between);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, between);
    end();
}

static void scan(void)
{
    connect_halves();
    MPI_Scan(x, y, 1, MPI_INT, MPI_SUM, between);
    end();
}

static void in_place(void)
{
    connect_halves();
    MPI_Allreduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, between);
    end();
}

static void grid_on_both(void)
{
    int dims = 4, periodic = 0;
    connect_halves();
    MPI_Cart_create(between, 1, &dims, &periodic, 0, &made);
    end();
}

static void window_on_both(void)
{
    MPI_Win window;
    connect_halves();
    MPI_Win_create(x, sizeof x, 4, MPI_INFO_NULL, between, &window);
    end();
}

static void lengths_differ(void)
{
    connect_halves();
    MPI_Allgather(x, rank < 2 ? 2 : 1, MPI_INT, y, 1, MPI_INT, between);
    end();
}

static void types_differ(void)
{
    connect_halves();
    MPI_Allreduce(x, y, 1, rank < 2 ? MPI_INT : MPI_FLOAT, MPI_SUM, between);
    end();
}

static void gather_types_differ(void)
{
    connect_halves();
    MPI_Gather(x, 1, MPI_INT, y, 1, MPI_FLOAT, rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0, between);
    end();
}

static void ibcast_types_differ(void)
{
    MPI_Request request;
    connect_halves();
    int root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0;
    MPI_Ibcast(x, 1, rank == 0 ? MPI_INT : MPI_FLOAT, root, between, &request);
    MPI_Wait(&request, ANY);
    end();
}

CASES(MPI_THREAD_SINGLE, CASE(remote_leader_is_the_local_one), CASE(remote_leader_is_of_the_own_group),
      CASE(local_leader_beyond_the_end), CASE(tag_negative), CASE(peer_communicator_null),
      CASE(made_of_an_intercommunicator), CASE(one_group_does_not_come), CASE(merge_words_differ),
      CASE(merge_of_an_intracommunicator), CASE(destination_of_the_own_group), CASE(root_beyond_the_end),
      CASE(nobody_is_the_root), CASE(barrier_against_bcast), CASE(scan), CASE(in_place), CASE(grid_on_both),
      CASE(window_on_both), CASE(lengths_differ), CASE(types_differ), CASE(gather_types_differ),
      CASE(ibcast_types_differ))
