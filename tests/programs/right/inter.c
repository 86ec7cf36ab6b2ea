/* Correct programs: intercommunicators (MPI-5 sections 6.2.2 and 7.6). Ranks 0 and 1 are one group, the others another.
 */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm half, between;
static int x[64], y[64];
static int is_low, theirs, ours;

static void make(void)
{
    is_low = rank < 2;
    MPI_Comm_split(WORLD, is_low, 0, &half);
    MPI_Intercomm_create(half, 0, WORLD, is_low ? 2 : 0, 9, &between);
    MPI_Comm_size(between, &ours);
    MPI_Comm_remote_size(between, &theirs);
    for (int i = 0; i < 64; i++)
        x[i] = rank;
}

static void end(void)
{
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* The argument root, where rank 1 is the root. */
static int root(void)
{
    return is_low ? (rank == 1 ? MPI_ROOT : MPI_PROC_NULL) : 1;
}

/* What the ranks of the other group have, added. */
static int sum_of_others(void)
{
    return is_low ? size * (size - 1) / 2 - 1 : 1;
}

static void every_operation(void)
{
    make();
    MPI_Barrier(between);
    MPI_Bcast(x, 1, MPI_INT, root(), between);
    EXPECT(x[0], is_low ? rank : 1);
    x[0] = rank;
    MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, root(), between);
    MPI_Scatter(x, 1, MPI_INT, y, 1, MPI_INT, root(), between);
    MPI_Allgather(x, 2, MPI_INT, y, 2, MPI_INT, between);
    EXPECT(y[2], is_low ? 3 : 1);
    MPI_Alltoall(x, 1, MPI_INT, y, 1, MPI_INT, between);
    MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, root(), between);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, between);
    EXPECT(y[0], sum_of_others());
    int counts[8] = {0};
    counts[0] = 6;
    MPI_Reduce_scatter(x, y, counts, MPI_INT, MPI_SUM, between);
    end();
}

static void every_operation_in_the_background(void)
{
    MPI_Request all[4];
    int first = -1, sum = -1;
    make();
    MPI_Ibarrier(between, &all[0]);
    MPI_Iallreduce(x, &sum, 1, MPI_INT, MPI_SUM, between, &all[1]);
    MPI_Ibcast(rank == 1 ? x : &first, 1, MPI_INT, root(), between, &all[2]);
    MPI_Iallgather(x, 1, MPI_INT, y, 1, MPI_INT, between, &all[3]);
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
    EXPECT(sum, sum_of_others());
    EXPECT(first, is_low ? -1 : 1);
    end();
}

static void same_elements_by_other_types(void)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    make();
    MPI_Allgather(x, is_low ? 1 : 2, is_low ? pair : MPI_INT, y, is_low ? 2 : 1, is_low ? MPI_INT : pair, between);
    EXPECT(y[0], is_low ? 2 : 0);
    MPI_Bcast(x, is_low ? 8 : 2, is_low ? MPI_BYTE : MPI_INT, root(), between);
    MPI_Type_free(&pair);
    end();
}

static void late_members(void)
{
    make();
    for (int i = 0; i < size; i++) {
        if (rank == i)
            nap(0.1);
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, between);
        EXPECT(y[0], sum_of_others());
        if (rank == i)
            nap(0.1);
        MPI_Barrier(between);
    }
    end();
}

static void merged_and_split(void)
{
    MPI_Comm all, part;
    int n = 0;
    make();
    MPI_Intercomm_merge(between, is_low, &all);
    MPI_Comm_size(all, &n);
    EXPECT(n, size);
    MPI_Comm_split(between, 0, rank, &part);
    MPI_Comm_remote_size(part, &n);
    EXPECT(n, theirs);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, part);
    EXPECT(y[0], sum_of_others());
    MPI_Comm_free(&part);
    MPI_Comm_free(&all);
    end();
}

CASES(MPI_THREAD_SINGLE, CASE(every_operation), CASE(every_operation_in_the_background),
      CASE(same_elements_by_other_types), CASE(late_members), CASE(merged_and_split))
