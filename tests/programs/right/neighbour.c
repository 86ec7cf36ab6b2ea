/* Correct programs: neighbourhood collectives (MPI-5 section 8.6). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm ring;
static int x[16], y[16];

static void make(int periodic)
{
    MPI_Cart_create(WORLD, 1, &size, &periodic, 0, &ring);
    x[0] = 10 * rank;
    x[1] = 10 * rank + 1;
}

static void check_halo(void)
{
    EXPECT(y[0], 10 * ((rank + size - 1) % size) + 1);
    EXPECT(y[1], 10 * ((rank + 1) % size));
}

static void halo_exchange(void)
{
    make(1);
    for (int i = 0; i < size; i++) {
        if (rank == i)
            nap(0.05);
        MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
        check_halo();
    }
    MPI_Comm_free(&ring);
}

static void persistent_halo_exchange(void)
{
    MPI_Request request;
    make(1);
    MPI_Neighbor_alltoall_init(x, 1, MPI_INT, y, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        y[0] = y[1] = -1;
        MPI_Start(&request);
        MPI_Wait(&request, ANY);
        check_halo();
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&ring);
}

static void same_elements_by_other_types(void)
{
    /* Rank 0 sends bytes, the others numbers. */
    make(1);
    MPI_Neighbor_alltoall(x, rank == 0 ? 4 : 1, rank == 0 ? MPI_BYTE : MPI_INT, y, 1, MPI_INT, ring);
    check_halo();
    MPI_Comm_free(&ring);
}

static void ring_of_two(void)
{
    /* Both neighbours are the same rank: the blocks differ in type. */
    int counts[2] = {1, 1};
    MPI_Aint to[2] = {0, 8}, from[2] = {8, 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT}, reverse[2] = {MPI_FLOAT, MPI_INT};
    make(1);
    MPI_Neighbor_alltoallw(x, counts, to, types, y, counts, from, reverse, ring);
    EXPECT(y[0], 10 * (1 - rank));
    MPI_Comm_free(&ring);
}

static void graph_with_loops_and_repeated_edges(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int sources[3] = {rank, last, last}, destinations[3] = {rank, next, next};
    MPI_Dist_graph_create_adjacent(WORLD, 3, sources, MPI_UNWEIGHTED, 3, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &ring);
    for (int i = 0; i < 3; i++)
        x[i] = 10 * rank + i;
    MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    EXPECT(y[0], 10 * rank);
    EXPECT(y[1], 10 * last + 1);
    EXPECT(y[2], 10 * last + 2);
    MPI_Comm_free(&ring);
}

static void ranks_without_neighbours(void)
{
    /* Only ranks 0 and 1 exchange anything. */
    int other = 1 - rank, n = rank < 2;
    MPI_Dist_graph_create_adjacent(WORLD, n, &other, MPI_UNWEIGHTED, n, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &ring);
    x[0] = rank;
    MPI_Neighbor_allgather(x, 1, MPI_INT, y, 1, MPI_INT, ring);
    if (n)
        EXPECT(y[0], other);
    MPI_Comm_free(&ring);
}

CASES(MPI_THREAD_SINGLE, CASE(halo_exchange), CASE(persistent_halo_exchange), CASE(same_elements_by_other_types),
      CASE(ring_of_two), CASE(graph_with_loops_and_repeated_edges), CASE(ranks_without_neighbours))
