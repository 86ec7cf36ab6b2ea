/* Wrong programs: partitioned communication (MPI-5 chapter 4). Rank 0 sends, rank 1 receives. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64];
static MPI_Request request;

/* Makes a request of two partitions of four numbers. */
static void make(void)
{
    if (rank == 0)
        MPI_Psend_init(x, 2, 4, MPI_INT, 1, 3, WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(x, 2, 4, MPI_INT, 0, 3, WORLD, MPI_INFO_NULL, &request);
}

/* Sends what is left, so that the request can be completed. */
static void end(int first)
{
    if (rank == 0)
        MPI_Pready_range(first, 1, request);
    MPI_Wait(&request, ANY);
    MPI_Request_free(&request);
}

static void partition_beyond_the_end(void)
{
    make();
    MPI_Start(&request);
    if (rank == 0)
        MPI_Pready(2, request);
    end(0);
}

static void partition_negative(void)
{
    make();
    MPI_Start(&request);
    if (rank == 0)
        MPI_Pready(-1, request);
    end(0);
}

static void ready_twice(void)
{
    make();
    MPI_Start(&request);
    if (rank == 0) {
        MPI_Pready(0, request);
        MPI_Pready(0, request);
    }
    end(1);
}

static void ready_before_start(void)
{
    make();
    if (rank == 0)
        MPI_Pready(0, request);
    MPI_Start(&request);
    end(0);
}

static void ready_of_a_receive(void)
{
    make();
    MPI_Start(&request);
    if (rank == 1)
        MPI_Pready(0, request);
    end(0);
}

static void arrived_of_a_send(void)
{
    int flag;
    make();
    MPI_Start(&request);
    if (rank == 0)
        MPI_Parrived(request, 0, &flag);
    end(0);
}

static void arrived_beyond_the_end(void)
{
    int flag;
    make();
    MPI_Start(&request);
    if (rank == 1)
        MPI_Parrived(request, 7, &flag);
    end(0);
}

static void any_source(void)
{
    MPI_Precv_init(x, 2, 4, MPI_INT, MPI_ANY_SOURCE, 3, WORLD, MPI_INFO_NULL, &request);
}

static void partitions_negative(void)
{
    MPI_Psend_init(x, -2, 4, MPI_INT, 1 - rank, 3, WORLD, MPI_INFO_NULL, &request);
}

static void sender_has_more(void)
{
    if (rank == 0)
        MPI_Psend_init(x, 4, 4, MPI_INT, 1, 3, WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(x, 2, 4, MPI_INT, 0, 3, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0)
        MPI_Pready_range(0, 3, request);
    MPI_Wait(&request, ANY);
    MPI_Request_free(&request);
}

static void partition_never_ready(void)
{
    make();
    MPI_Start(&request);
    if (rank == 0)
        MPI_Pready(0, request);
    MPI_Wait(&request, ANY);
}

static void ordinary_receive(void)
{
    if (rank == 1) {
        MPI_Recv(x, 8, MPI_INT, 0, 3, WORLD, ANY);
        return;
    }
    make();
    MPI_Start(&request);
    end(0);
}

static void started_twice(void)
{
    make();
    MPI_Start(&request);
    MPI_Start(&request);
    end(0);
}

static void freed_while_active(void)
{
    make();
    MPI_Start(&request);
    MPI_Request copy = request;
    MPI_Request_free(&copy);
    end(0);
}

static void types_differ(void)
{
    if (rank == 0)
        MPI_Psend_init(x, 2, 4, MPI_INT, 1, 3, WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(x, 4, 2, MPI_FLOAT, 0, 3, WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    end(0);
}

CASES(MPI_THREAD_SINGLE, CASE(partition_beyond_the_end), CASE(partition_negative), CASE(ready_twice),
      CASE(ready_before_start), CASE(ready_of_a_receive), CASE(arrived_of_a_send), CASE(arrived_beyond_the_end),
      CASE(any_source), CASE(partitions_negative), CASE(sender_has_more), CASE(partition_never_ready),
      CASE(ordinary_receive), CASE(started_twice), CASE(freed_while_active), CASE(types_differ))
