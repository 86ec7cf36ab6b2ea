/* Correct programs: collective operations, blocking, in the background and persistent. Nothing may be reported. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];

static void fill(int *values, int n, int value)
{
    for (int i = 0; i < n; i++)
        values[i] = value;
}

static void every_operation_once(void)
{
    int sum = 0, root = size - 1;
    fill(x, 64, rank);
    MPI_Barrier(WORLD);
    MPI_Bcast(y, 8, MPI_INT, root, WORLD);
    MPI_Reduce(x, &sum, 1, MPI_INT, MPI_SUM, root, WORLD);
    if (rank == root)
        EXPECT(sum, size * (size - 1) / 2);
    MPI_Allreduce(x, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(sum, size * (size - 1) / 2);
    MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, 0, WORLD);
    MPI_Allgather(x, 1, MPI_INT, y, 1, MPI_INT, WORLD);
    EXPECT(y[size - 1], size - 1);
    MPI_Scatter(x, 1, MPI_INT, y, 1, MPI_INT, root, WORLD);
    EXPECT(y[0], root);
    MPI_Alltoall(x, 1, MPI_INT, y, 1, MPI_INT, WORLD);
    EXPECT(y[0], 0);
    MPI_Scan(x, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(sum, rank * (rank + 1) / 2);
    MPI_Exscan(x, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    MPI_Reduce_scatter_block(x, y, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(y[0], size * (size - 1) / 2);
}

static void arguments_that_only_the_root_has(void)
{
    /* Elsewhere they have no meaning, and may be garbage. */
    int bad = -99;
    MPI_Gather(&rank, 1, MPI_INT, rank ? NULL : y, rank ? bad : 1, rank ? MPI_DATATYPE_NULL : MPI_INT, 0, WORLD);
    MPI_Scatter(rank ? NULL : x, rank ? bad : 1, rank ? MPI_DATATYPE_NULL : MPI_INT, y, 1, MPI_INT, 0, WORLD);
    MPI_Reduce(&rank, rank ? NULL : y, 1, MPI_INT, MPI_SUM, 0, WORLD);
}

static void in_place_everywhere(void)
{
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(sum, size);
    MPI_Reduce(rank ? x : MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, 0, WORLD);
    y[rank] = rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, 1, MPI_INT, WORLD);
    EXPECT(y[size - 1], size - 1);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, 1, MPI_INT, WORLD);
    MPI_Gather(rank ? x : MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, 0, WORLD);
    MPI_Scatter(x, 1, MPI_INT, rank ? y : MPI_IN_PLACE, 1, MPI_INT, 0, WORLD);
}

static void in_place_on_one_rank_only(void)
{
    int sum = rank, out = rank;
    MPI_Allreduce(rank == 0 ? MPI_IN_PLACE : &out, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(sum, size * (size - 1) / 2);
}

static void same_signature_by_other_types(void)
{
    MPI_Datatype four;
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    fill(x, 8, rank == 0 ? 5 : 0);
    MPI_Bcast(x, rank % 2 ? 2 : 8, rank % 2 ? four : MPI_INT, 0, WORLD);
    EXPECT(x[7], 5);
    MPI_Type_free(&four);
}

static void same_buffer_without_elements(void)
{
    MPI_Allreduce(x, x, 0, MPI_INT, MPI_SUM, WORLD);
    MPI_Allgather(x, 0, MPI_INT, x, 0, MPI_INT, WORLD);
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, WORLD);
}

static void same_buffer_where_it_is_not_significant(void)
{
    /* The receive buffer of MPI_Reduce and MPI_Gather has a meaning at the root only. */
    MPI_Reduce(x, rank ? x : y, 4, MPI_INT, MPI_SUM, 0, WORLD);
    MPI_Gather(x, 1, MPI_INT, rank ? x : y, 1, MPI_INT, 0, WORLD);
}

static void adjacent_buffers(void)
{
    fill(x, 4, 1);
    MPI_Allreduce(x, x + 4, 4, MPI_INT, MPI_SUM, WORLD);
    EXPECT(x[7], size);
    MPI_Scan(x + 4, x, 4, MPI_INT, MPI_SUM, WORLD);
}

static void slow_rank_in_a_barrier(void)
{
    if (rank == 1)
        compute(5);
    MPI_Barrier(WORLD);
}

static void sleeping_rank_in_an_allreduce(void)
{
    if (rank == size - 1)
        nap(5);
    MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD);
}

static void unequal_loads(void)
{
    for (int i = 0; i < 6; i++) {
        if (i % size == rank)
            compute(0.7);
        MPI_Allreduce(x, y, 16, MPI_INT, MPI_SUM, WORLD);
    }
}

static void root_runs_ahead(void)
{
    /* A root may leave MPI_Bcast long before the others come. */
    if (rank)
        nap(3);
    for (int i = 0; i < 50; i++)
        MPI_Bcast(x, 16, MPI_INT, 0, WORLD);
    MPI_Reduce(x, y, 16, MPI_INT, MPI_SUM, 0, WORLD);
}

static void subgroups_work_on_different_things(void)
{
    MPI_Comm half;
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    for (int i = 0; i < 100; i++) {
        if (rank % 2)
            MPI_Bcast(x, 8, MPI_INT, 0, half);
        else
            MPI_Allreduce(x, y, 3, MPI_INT, i % 2 ? MPI_MAX : MPI_SUM, half);
    }
    if (rank % 2)
        nap(3);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Barrier(WORLD);
}

static void communicators_in_different_orders(void)
{
    /* Non-blocking operations on different communicators may start in any order. */
    MPI_Comm a, b;
    MPI_Request both[2];
    MPI_Comm_dup(WORLD, &a);
    MPI_Comm_dup(WORLD, &b);
    MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, rank % 2 ? a : b, &both[0]);
    MPI_Iallreduce(x + 8, y + 8, 4, MPI_INT, MPI_SUM, rank % 2 ? b : a, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
}

static void completed_in_another_order(void)
{
    MPI_Request all[8];
    for (int i = 0; i < 8; i++)
        MPI_Ibcast(x + i, 1, MPI_INT, i % size, WORLD, &all[i]);
    for (int i = 0; i < 8; i++)
        MPI_Wait(&all[rank % 2 ? i : 7 - i], MPI_STATUS_IGNORE);
}

static void blocking_while_one_is_in_the_background(void)
{
    MPI_Request request;
    int sum = 0;
    MPI_Ibarrier(WORLD, &request);
    MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    EXPECT(sum, size * size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void test_loop_of_a_collective(void)
{
    MPI_Request request;
    int flag = 0;
    if (rank == 0)
        nap(4);
    MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void computation_between_start_and_wait(void)
{
    MPI_Request request;
    MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD, &request);
    compute(rank == 0 ? 4 : 0.1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent_reduction(void)
{
    MPI_Request request;
    MPI_Allreduce_init(x, y, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 100; i++) {
        fill(x, 4, i);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(y[3], i * size);
    }
    MPI_Request_free(&request);
}

static void persistent_started_in_different_orders(void)
{
    /* Initialisation is collective and ordered; the starts of different requests are not. */
    MPI_Request both[2];
    MPI_Allreduce_init(x, y, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Bcast_init(x + 8, 4, MPI_INT, 0, WORLD, MPI_INFO_NULL, &both[1]);
    for (int i = 0; i < 20; i++) {
        MPI_Start(&both[rank % 2]);
        MPI_Start(&both[1 - rank % 2]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

static void add(void *in, void *out, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)out)[i] += ((int *)in)[i];
}

static void operation_of_the_program(void)
{
    MPI_Op op;
    if (rank == 0) {
        MPI_Op_create(add, 1, &op); /* so that the handles differ: only the function has to be the same */
        MPI_Op_free(&op);
    }
    MPI_Op_create(add, 1, &op);
    fill(x, 4, 1);
    MPI_Allreduce(x, y, 4, MPI_INT, op, WORLD);
    EXPECT(y[0], size);
    MPI_Op_free(&op);
}

static void large_operands(void)
{
    int n = 1 << 20, *out = zeros(sizeof(int) << 20), *in = zeros(sizeof(int) << 20);
    fill(out, n, 1);
    MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, WORLD);
    EXPECT(in[n - 1], size);
    MPI_Bcast(in, n, MPI_INT, size - 1, WORLD);
    MPI_Reduce(out, in, n, MPI_INT, MPI_MAX, 0, WORLD);
    free(out);
    free(in);
}

static void empty_parts(void)
{
    int counts[64] = {0}, displs[64] = {0};
    counts[0] = 1;
    MPI_Gatherv(x, rank == 0, MPI_INT, y, counts, displs, MPI_INT, 0, WORLD);
    MPI_Scatterv(x, counts, displs, MPI_INT, y, rank == 0, MPI_INT, 0, WORLD);
}

static void root_changes_from_call_to_call(void)
{
    for (int i = 0; i < 200; i++) {
        int value = rank == i % size ? i : -1;
        MPI_Bcast(&value, 1, MPI_INT, i % size, WORLD);
        EXPECT(value, i);
        MPI_Reduce(&rank, y, 1, MPI_INT, i % 2 ? MPI_MAX : MPI_SUM, i % size, WORLD);
        MPI_Gather(&rank, 1, MPI_INT, y, 1, MPI_INT, (i + 1) % size, WORLD);
    }
}

CASES(MPI_THREAD_SINGLE, CASE(every_operation_once), CASE(arguments_that_only_the_root_has), CASE(in_place_everywhere),
      CASE(in_place_on_one_rank_only), CASE(same_signature_by_other_types), CASE(same_buffer_without_elements),
      CASE(same_buffer_where_it_is_not_significant), CASE(adjacent_buffers), CASE(slow_rank_in_a_barrier),
      CASE(sleeping_rank_in_an_allreduce), CASE(unequal_loads), CASE(root_runs_ahead),
      CASE(subgroups_work_on_different_things), CASE(communicators_in_different_orders),
      CASE(completed_in_another_order), CASE(blocking_while_one_is_in_the_background), CASE(test_loop_of_a_collective),
      CASE(computation_between_start_and_wait), CASE(persistent_reduction),
      CASE(persistent_started_in_different_orders), CASE(operation_of_the_program), CASE(large_operands),
      CASE(empty_parts), CASE(root_changes_from_call_to_call))
