/* Wrong programs: neighbourhood collectives (MPI-5 section 8.6), on a ring. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm ring;
static int x[64], y[64];

static void make(void)
{
    int periodic = 1;
    MPI_Cart_create(WORLD, 1, &size, &periodic, 0, &ring);
}

static void without_topology(void)
{
    MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, WORLD);
}

static void count_negative(void)
{
    make();
    MPI_Neighbor_allgather(x, -1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void in_place(void)
{
    make();
    MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void same_buffer(void)
{
    make();
    MPI_Neighbor_alltoall(x, 1, MPI_INT, x, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void type_null(void)
{
    int counts[2] = {1, 1};
    MPI_Aint places[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    make();
    MPI_Neighbor_alltoallw(x, counts, places, types, y, counts, places, types, ring);
    MPI_Comm_free(&ring);
}

static void lengths_differ(void)
{
    make();
    MPI_Neighbor_alltoall(x, rank == 0 ? 2 : 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void allgather_against_alltoall(void)
{
    make();
    if (rank == 0)
        MPI_Neighbor_allgather(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    else
        MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void alltoall_against_barrier(void)
{
    make();
    if (rank == 0)
        MPI_Barrier(ring);
    else
        MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void one_rank_missing(void)
{
    make();
    if (rank != 0)
        MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void lengths_differ_in_the_background(void)
{
    MPI_Request request;
    make();
    MPI_Ineighbor_alltoall(x, rank == 0 ? 2 : 1, MPI_INT, y, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, ANY);
    MPI_Comm_free(&ring);
}

static void alltoall_against_barrier_in_the_background(void)
{
    MPI_Request request;
    make();
    if (rank == 0)
        MPI_Ibarrier(ring, &request);
    else
        MPI_Ineighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, ANY);
    MPI_Comm_free(&ring);
}

static void one_rank_missing_in_the_background(void)
{
    MPI_Request request;
    make();
    if (rank != 0) {
        MPI_Ineighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring, &request);
        MPI_Wait(&request, ANY);
    }
    MPI_Comm_free(&ring);
}

static void source_that_does_not_send(void)
{
    /* Rank 1 expects something from rank 0, which does not know of it. */
    int zero = 0;
    MPI_Dist_graph_create_adjacent(WORLD, rank == 1, &zero, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &ring);
    MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void neighbour_beyond_the_end(void)
{
    int nine = 9;
    MPI_Dist_graph_create_adjacent(WORLD, 1, &nine, MPI_UNWEIGHTED, 1, &nine, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
}

static void types_differ(void)
{
    make();
    MPI_Neighbor_allgather(x, 1, rank == 0 ? MPI_FLOAT : MPI_INT, y, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void types_differ_in_the_background(void)
{
    MPI_Request request;
    make();
    MPI_Ineighbor_alltoall(x, 1, rank == 0 ? MPI_FLOAT : MPI_INT, y, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, ANY);
    MPI_Comm_free(&ring);
}

static void types_differ_for_one_neighbour(void)
{
    int counts[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, rank == 0 ? MPI_FLOAT : MPI_INT}, ints[2] = {MPI_INT, MPI_INT};
    make();
    MPI_Neighbor_alltoallw(x, counts, places, types, y, counts, places, ints, ring);
    MPI_Comm_free(&ring);
}

CASES(MPI_THREAD_SINGLE, CASE(without_topology), CASE(count_negative), CASE(in_place), CASE(same_buffer),
      CASE(type_null), CASE(lengths_differ), CASE(allgather_against_alltoall), CASE(alltoall_against_barrier),
      CASE(one_rank_missing), CASE(lengths_differ_in_the_background), CASE(alltoall_against_barrier_in_the_background),
      CASE(one_rank_missing_in_the_background), CASE(source_that_does_not_send), CASE(neighbour_beyond_the_end),
      CASE(types_differ), CASE(types_differ_in_the_background), CASE(types_differ_for_one_neighbour))
