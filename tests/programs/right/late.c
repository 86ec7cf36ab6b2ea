/* Correct programs: ranks that are late in collectives, so that the others wait long enough to ask what keeps them. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

enum { AHEAD = 200, LONG = 40000 };
static int x[LONG], y[LONG];

static void be_late(int turn)
{
    if (turn % size == rank)
        nap(0.06);
}

static void blocking_operations(void)
{
    for (int i = 0; i < 2 * size; i++) {
        int sum = 0;
        be_late(i);
        MPI_Barrier(WORLD);
        be_late(i + 1);
        x[0] = rank == i % size ? i : -1;
        MPI_Bcast(x, i % 2 ? LONG : 1, MPI_INT, i % size, WORLD);
        EXPECT(x[0], i);
        be_late(i + 2);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, WORLD);
        EXPECT(sum, size * (size - 1) / 2);
    }
}

static void the_root_is_far_ahead(void)
{
    for (int i = 0; i < 3 * AHEAD; i++) {
        if (i % AHEAD == 0 && rank != 0)
            nap(0.05 * rank);
        x[0] = rank == 0 ? i : -1;
        MPI_Bcast(x, 1, MPI_INT, 0, WORLD);
        EXPECT(x[0], i);
    }
}

static void background_operations_in_any_order(void)
{
    for (int i = 0; i < 2 * size; i++) {
        MPI_Request all[3];
        int first = rank, second = -1, third = rank == 0 ? i : -1;
        be_late(i);
        MPI_Iallreduce(&rank, &second, 1, MPI_INT, MPI_MAX, WORLD, &all[0]);
        be_late(i + 1);
        MPI_Ibcast(&third, 1, MPI_INT, 0, WORLD, &all[1]);
        MPI_Ibarrier(WORLD, &all[2]);
        MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, WORLD);
        be_late(i + 2);
        for (int k = 0; k < 3; k++)
            MPI_Wait(&all[(rank + k) % 3], MPI_STATUS_IGNORE);
        EXPECT(first, size * (size - 1) / 2);
        EXPECT(second, size - 1);
        EXPECT(third, i);
    }
}

static void persistent_operations_started_late(void)
{
    MPI_Request both[2];
    int sum = 0, one = 1;
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Bcast_init(x, LONG, MPI_INT, 0, WORLD, MPI_INFO_NULL, &both[1]);
    for (int i = 0; i < 2 * size; i++) {
        x[LONG - 1] = rank == 0 ? i : -1;
        be_late(i);
        MPI_Start(&both[rank % 2]);
        be_late(i + 1);
        MPI_Start(&both[1 - rank % 2]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        EXPECT(sum, size);
        EXPECT(x[LONG - 1], i);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

static void tests_for_long(void)
{
    MPI_Request request;
    int done = 0;
    if (rank == 0)
        nap(0.3);
    MPI_Ialltoall(x, 1, MPI_INT, y, 1, MPI_INT, WORLD, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void communicators_are_made_late(void)
{
    for (int i = 0; i < size; i++) {
        MPI_Comm other, half;
        be_late(i);
        MPI_Comm_dup(WORLD, &other);
        be_late(i + 1);
        MPI_Comm_split(other, rank % 2, 0, &half);
        be_late(i + 2);
        MPI_Barrier(half);
        MPI_Bcast(x, LONG, MPI_INT, 0, other);
        MPI_Comm_free(&half);
        MPI_Comm_free(&other);
    }
}

static void neighbours_are_late(void)
{
    MPI_Comm ring;
    int periodic = 1, from_both[2];
    MPI_Cart_create(WORLD, 1, &size, &periodic, 0, &ring);
    for (int i = 0; i < size; i++) {
        be_late(i);
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, from_both, 1, MPI_INT, ring);
        EXPECT(from_both[1], (rank + 1) % size);
    }
    MPI_Comm_free(&ring);
}

static void both_sorts_in_one_order(void)
{
    MPI_Request background, persistent;
    int sum = 0, one = 1;
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &persistent);
    for (int i = 0; i < 2 * size; i++) {
        be_late(i);
        MPI_Ibarrier(WORLD, &background);
        be_late(i + 1);
        MPI_Bcast(x, 1, MPI_INT, i % size, WORLD);
        MPI_Start(&persistent);
        be_late(i + 2);
        MPI_Barrier(WORLD);
        MPI_Wait(&persistent, ANY);
        EXPECT(sum, size);
        be_late(i + 3);
        MPI_Wait(&background, ANY);
    }
    MPI_Request_free(&persistent);
}

static void nobody_waits_for_what_all_have_begun(void)
{
    /* Each rank begins and ends the same operations; in between it computes, or does something else. */
    MPI_Request background;
    for (int i = 0; i < size; i++) {
        MPI_Ibarrier(WORLD, &background);
        if (rank == i)
            compute(0.2);
        else if (rank == (i + 1) % size)
            MPI_Send(x, 1, MPI_INT, (i + 2) % size, 3, WORLD);
        else if (rank == (i + 2) % size)
            MPI_Recv(y, 1, MPI_INT, (i + 1) % size, 3, WORLD, ANY);
        MPI_Wait(&background, ANY);
    }
}

CASES(MPI_THREAD_SINGLE, CASE(both_sorts_in_one_order), CASE(nobody_waits_for_what_all_have_begun),
      CASE(blocking_operations), CASE(the_root_is_far_ahead), CASE(background_operations_in_any_order),
      CASE(persistent_operations_started_late), CASE(tests_for_long), CASE(communicators_are_made_late),
      CASE(neighbours_are_late))
