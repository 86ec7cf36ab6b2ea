/* Wrong programs: blocking collective operations (MPI-5 chapter 6). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

enum { MANY = 300000 };

static int x[64], y[64], z[64];

static void root_beyond_the_end(void)
{
    MPI_Bcast(x, 1, MPI_INT, size, WORLD);
}

static void root_negative(void)
{
    MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, -5, WORLD);
}

static void root_beyond_the_end_on_one(void)
{
    MPI_Bcast(x, 1, MPI_INT, rank == 1 ? size : 0, WORLD);
}

static void count_negative(void)
{
    MPI_Allreduce(x, y, -1, MPI_INT, MPI_SUM, WORLD);
}

static void buffer_null(void)
{
    MPI_Bcast(NULL, 4, MPI_INT, 0, WORLD);
}

static void result_null(void)
{
    MPI_Reduce(x, NULL, 4, MPI_INT, MPI_SUM, 0, WORLD);
}

static void operation_null(void)
{
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, WORLD);
}

static void operation_not_for_type(void)
{
    double a = 1, b;
    MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_BAND, WORLD);
}

static void operation_not_for_characters(void)
{
    char a = 1, b;
    MPI_Allreduce(&a, &b, 1, MPI_CHAR, MPI_SUM, WORLD);
}

/* The root asks for the greatest and then for the least value, the other ranks in the other order. Other libraries
   carry out what the root says, where it combines everything. */
static void extremes_in_different_orders(void)
{
    double mine = 10 + rank, greatest = 0, least = 0;
    for (int i = 0; i < 20; i++) {
        if (rank == 0) {
            MPI_Reduce(&mine, &greatest, 1, MPI_DOUBLE, MPI_MAX, 0, WORLD);
            MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, WORLD);
        } else {
            MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, WORLD);
            MPI_Reduce(&mine, &greatest, 1, MPI_DOUBLE, MPI_MAX, 0, WORLD);
        }
    }
    if (rank == 0 && (greatest != 9 + size || least != 10))
        abort();
}

/* Of different operations that of the root is carried out, or that of rank 0, however long the operands are. */
static void operations_of_the_leader(void)
{
    static const int lengths[] = {1, 100, MANY};
    MPI_Op op = rank == 0 ? MPI_MAX : MPI_MIN;
    int *mine = zeros(sizeof(int) * MANY), *result = zeros(sizeof(int) * MANY);
    for (int i = 0; i < MANY; i++)
        mine[i] = 10 + rank;
    for (int l = 0; l < 3; l++) {
        int n = lengths[l], last = n - 1, part = (n + size - 1) / size, greatest = 9 + size;
        MPI_Request request;
        MPI_Allreduce(mine, result, n, MPI_INT, op, WORLD);
        if (result[0] != greatest || result[last] != greatest)
            abort();
        result[0] = result[last] = 0;
        MPI_Iallreduce(mine, result, n, MPI_INT, op, WORLD, &request);
        MPI_Wait(&request, ANY);
        if (result[0] != greatest || result[last] != greatest)
            abort();
        MPI_Reduce_scatter_block(mine, result, part > MANY / size ? MANY / size : part, MPI_INT, op, WORLD);
        if (result[0] != greatest)
            abort();
        MPI_Reduce(mine, result, n, MPI_INT, op, 1, WORLD);
        if (rank == 1 && (result[0] != 10 || result[last] != 10))
            abort();
        MPI_Ireduce(mine, result, n, MPI_INT, op, 1, WORLD, &request);
        MPI_Wait(&request, ANY);
        if (rank == 1 && (result[0] != 10 || result[last] != 10))
            abort();
    }
    free(mine);
    free(result);
}

static void sum_of_pairs(void)
{
    MPI_Allreduce(x, y, 1, MPI_2INT, MPI_SUM, WORLD);
}

static void maxloc_of_integers(void)
{
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_MAXLOC, WORLD);
}

static void sum_of_derived_type(void)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce(x, y, 1, pair, MPI_SUM, WORLD);
    MPI_Type_free(&pair);
}

static void operation_freed(void)
{
    MPI_Op op, stale;
    MPI_Op_create((MPI_User_function *)abort, 1, &op);
    stale = op;
    MPI_Op_free(&op);
    MPI_Allreduce(x, y, 1, MPI_INT, stale, WORLD);
}

static void free_predefined_operation(void)
{
    MPI_Op op = MPI_SUM;
    MPI_Op_free(&op);
}

static void replace_in_reduction(void)
{
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_REPLACE, WORLD);
}

static void communicator_null(void)
{
    MPI_Barrier(MPI_COMM_NULL);
}

static void communicator_of_others(void)
{
    /* Ranks that are not in a communicator got MPI_COMM_NULL, and use it. */
    MPI_Comm part;
    MPI_Comm_split(WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &part);
    if (rank == 1)
        MPI_Barrier(part);
    if (rank == 0)
        MPI_Comm_free(&part);
}

static void type_uncommitted(void)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Bcast(x, 1, pair, 0, WORLD);
    MPI_Type_free(&pair);
}

/* --- ranks that differ -------------------------------------------------------------------------------------------- */

/* A rank that has left rightly before the difference is seen is told in the next call. */
static void then_barrier(void)
{
    MPI_Barrier(WORLD);
}

static void bcast_roots_differ(void)
{
    MPI_Bcast(x, 4, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void bcast_roots_differ_large(void)
{
    int *large = zeros(sizeof(int) * MANY);
    MPI_Bcast(large, MANY, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
    free(large);
}

static void bcast_root_is_own_rank(void)
{
    MPI_Bcast(x, 1, MPI_INT, rank, WORLD);
    then_barrier();
}

static void reduce_roots_differ(void)
{
    MPI_Reduce(x, y, 4, MPI_INT, MPI_SUM, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void gather_roots_differ(void)
{
    MPI_Gather(x, 2, MPI_INT, y, 2, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void scatter_roots_differ(void)
{
    MPI_Scatter(x, 2, MPI_INT, y, 2, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void gatherv_roots_differ(void)
{
    int counts[] = {1, 1, 1}, displs[] = {0, 1, 2};
    MPI_Gatherv(x, 1, MPI_INT, y, counts, displs, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void scatterv_roots_differ(void)
{
    int counts[] = {1, 1, 1}, displs[] = {0, 1, 2};
    MPI_Scatterv(x, counts, displs, MPI_INT, y, 1, MPI_INT, rank == 1 ? 1 : 0, WORLD);
    then_barrier();
}

static void reduce_operations_differ(void)
{
    MPI_Reduce(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, 0, WORLD);
    then_barrier();
}

static void allreduce_operations_differ(void)
{
    MPI_Allreduce(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD);
    then_barrier();
}

static void allreduce_operations_differ_large(void)
{
    int *out = zeros(sizeof(int) * MANY), *in = zeros(sizeof(int) * MANY);
    MPI_Allreduce(out, in, MANY, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD);
    then_barrier();
    free(out);
    free(in);
}

static void scan_operations_differ(void)
{
    MPI_Scan(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD);
    then_barrier();
}

static void reduce_scatter_operations_differ(void)
{
    MPI_Reduce_scatter_block(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, WORLD);
    then_barrier();
}

static void bcast_lengths_differ(void)
{
    MPI_Bcast(x, rank == 0 ? 8 : 4, MPI_INT, 0, WORLD);
    then_barrier();
}

static void bcast_short_root(void)
{
    MPI_Bcast(x, rank == 0 ? 4 : 8, MPI_INT, 0, WORLD);
    then_barrier();
}

static void allreduce_lengths_differ(void)
{
    MPI_Allreduce(x, y, rank == 0 ? 8 : 4, MPI_INT, MPI_SUM, WORLD);
    then_barrier();
}

static void gather_lengths_differ(void)
{
    MPI_Gather(x, rank == 1 ? 3 : 2, MPI_INT, y, 2, MPI_INT, 0, WORLD);
    then_barrier();
}

static void scatter_lengths_differ(void)
{
    MPI_Scatter(x, 2, MPI_INT, y, rank == 1 ? 1 : 2, MPI_INT, 0, WORLD);
    then_barrier();
}

static void allgather_lengths_differ(void)
{
    MPI_Allgather(x, rank == 1 ? 3 : 2, MPI_INT, y, rank == 1 ? 3 : 2, MPI_INT, WORLD);
    then_barrier();
}

static void alltoall_lengths_differ(void)
{
    MPI_Alltoall(x, rank == 1 ? 3 : 2, MPI_INT, y, rank == 1 ? 3 : 2, MPI_INT, WORLD);
    then_barrier();
}

static void alltoallv_counts_differ(void)
{
    /* Rank 0 sends rank 1 more than that expects. */
    int out[] = {1, rank == 0 ? 5 : 1, 1}, in[] = {1, 1, 1}, displs[] = {0, 10, 20};
    MPI_Alltoallv(x, out, displs, MPI_INT, y, in, displs, MPI_INT, WORLD);
    then_barrier();
}

static void gatherv_counts_differ(void)
{
    int counts[] = {1, 1, 1}, displs[] = {0, 1, 2};
    MPI_Gatherv(x, rank + 1, MPI_INT, y, counts, displs, MPI_INT, 0, WORLD);
    then_barrier();
}

static void barrier_against_bcast(void)
{
    if (rank == 0)
        MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
    else
        MPI_Barrier(WORLD);
    then_barrier();
}

static void called_from_two_lines(void)
{
    if (rank == 0)
        MPI_Barrier(WORLD);
    else
        MPI_Bcast(x, 1, MPI_INT, 0, WORLD);
}

static void reduce_against_allreduce(void)
{
    if (rank == 0)
        MPI_Reduce(x, y, 4, MPI_INT, MPI_SUM, 0, WORLD);
    else
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD);
    then_barrier();
}

static void gather_against_scatter(void)
{
    if (rank == 0)
        MPI_Gather(x, 2, MPI_INT, y, 2, MPI_INT, 0, WORLD);
    else
        MPI_Scatter(x, 2, MPI_INT, y, 2, MPI_INT, 0, WORLD);
    then_barrier();
}

static void allgather_against_alltoall(void)
{
    if (rank == 0)
        MPI_Allgather(x, 2, MPI_INT, y, 2, MPI_INT, WORLD);
    else
        MPI_Alltoall(x, 2, MPI_INT, y, 2, MPI_INT, WORLD);
    then_barrier();
}

static void order_differs(void)
{
    if (rank == 0) {
        MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
        MPI_Allreduce(y, z, 4, MPI_INT, MPI_SUM, WORLD);
    } else {
        MPI_Allreduce(y, z, 4, MPI_INT, MPI_SUM, WORLD);
        MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
    }
    then_barrier();
}

static void in_place_on_one_rank(void)
{
    /* Legal. But the length is not the same. */
    if (rank == 0)
        MPI_Allreduce(MPI_IN_PLACE, y, 2, MPI_INT, MPI_SUM, WORLD);
    else
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD);
    then_barrier();
}

static void one_rank_bcasts_twice(void)
{
    MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
    if (rank == 0)
        MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
    MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
    then_barrier();
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static void allreduce_same_buffer(void)
{
    MPI_Allreduce(x, x, 4, MPI_INT, MPI_SUM, WORLD);
}

static void reduce_same_buffer(void)
{
    MPI_Reduce(x, x, 4, MPI_INT, MPI_SUM, 0, WORLD);
}

static void allgather_same_buffer(void)
{
    MPI_Allgather(x + 2 * rank, 2, MPI_INT, x, 2, MPI_INT, WORLD);
}

static void alltoall_same_buffer(void)
{
    MPI_Alltoall(x, 2, MPI_INT, x, 2, MPI_INT, WORLD);
}

static void scan_same_buffer(void)
{
    MPI_Scan(x, x, 4, MPI_INT, MPI_SUM, WORLD);
}

static void gather_same_buffer(void)
{
    MPI_Gather(x, 2, MPI_INT, x, 2, MPI_INT, 0, WORLD);
}

static void scatter_same_buffer(void)
{
    MPI_Scatter(x, 2, MPI_INT, x, 2, MPI_INT, 0, WORLD);
}

static void allreduce_overlapping(void)
{
    MPI_Allreduce(x, x + 2, 4, MPI_INT, MPI_SUM, WORLD);
}

static void in_place_as_result(void)
{
    MPI_Allreduce(x, MPI_IN_PLACE, 4, MPI_INT, MPI_SUM, WORLD);
}

static void in_place_in_bcast(void)
{
    MPI_Bcast(MPI_IN_PLACE, 4, MPI_INT, 0, WORLD);
}

static void in_place_at_gather_leaf(void)
{
    MPI_Gather(rank == 0 ? x : MPI_IN_PLACE, 2, MPI_INT, y, 2, MPI_INT, 0, WORLD);
}

static void in_place_at_reduce_leaf(void)
{
    MPI_Reduce(MPI_IN_PLACE, y, 2, MPI_INT, MPI_SUM, 0, WORLD);
}

static void in_place_at_both_ends(void)
{
    MPI_Allgather(MPI_IN_PLACE, 2, MPI_INT, MPI_IN_PLACE, 2, MPI_INT, WORLD);
}

/* --- hangs -------------------------------------------------------------------------------------------------------- */

static void bcast_root_is_own_rank_at_the_end(void)
{
    MPI_Bcast(x, 1, MPI_INT, rank, WORLD);
}

static void one_member_missing(void)
{
    MPI_Comm even;
    MPI_Comm_split(WORLD, rank % 2, 0, &even);
    if (rank == 0)
        MPI_Barrier(even);
    else if (rank == 2)
        MPI_Recv(x, 1, MPI_INT, 0, 3, WORLD, ANY);
}

static void one_rank_missing(void)
{
    if (rank != size - 1)
        MPI_Barrier(WORLD);
}

static void one_rank_in_another_communicator(void)
{
    MPI_Comm dup;
    MPI_Comm_dup(WORLD, &dup);
    MPI_Comm_set_name(dup, "copy");
    MPI_Barrier(rank == 0 ? dup : WORLD);
}

static void barrier_inside_if_root(void)
{
    MPI_Bcast(x, 1, MPI_INT, 0, WORLD);
    if (rank == 0)
        MPI_Barrier(WORLD);
    else
        MPI_Recv(x, 1, MPI_INT, 0, 1, WORLD, ANY);
}

static void send_after_collective_that_waits(void)
{
    if (rank == 0) {
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
        MPI_Send(x, 1, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Recv(x, 1, MPI_INT, 0, 0, WORLD, ANY);
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
    }
}

static void communicators_crossed(void)
{
    MPI_Comm a, b;
    MPI_Comm_dup(WORLD, &a);
    MPI_Comm_dup(WORLD, &b);
    MPI_Barrier(rank == 0 ? a : b);
    MPI_Barrier(rank == 0 ? b : a);
}

static void loop_counts_differ(void)
{
    for (int i = 0; i < 5 + rank; i++)
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, WORLD);
}

static void rank_returns_from_main(void)
{
    if (rank == 1)
        exit(0);
    MPI_Barrier(WORLD);
}

static void rank_exits_with_a_code(void)
{
    if (rank == 1)
        exit(7);
    MPI_Barrier(WORLD);
}

static void types_differ(void)
{
    float f[4] = {1, 2, 3, 4};
    if (rank == 0)
        MPI_Bcast(f, 4, MPI_FLOAT, 0, WORLD);
    else
        MPI_Bcast(x, 4, MPI_INT, 0, WORLD);
    then_barrier();
}

static void allreduce_types_differ(void)
{
    float f[4] = {1, 2, 3, 4}, g[4];
    if (rank == 0)
        MPI_Allreduce(f, g, 4, MPI_FLOAT, MPI_SUM, WORLD);
    else
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD);
    then_barrier();
}

CASES(MPI_THREAD_SINGLE, CASE(root_beyond_the_end), CASE(root_negative), CASE(root_beyond_the_end_on_one),
      CASE(count_negative), CASE(buffer_null), CASE(result_null), CASE(operation_null), CASE(operation_not_for_type),
      CASE(operation_not_for_characters), CASE(extremes_in_different_orders), CASE(operations_of_the_leader),
      CASE(sum_of_pairs), CASE(maxloc_of_integers), CASE(sum_of_derived_type), CASE(operation_freed),
      CASE(free_predefined_operation), CASE(replace_in_reduction), CASE(communicator_null),
      CASE(communicator_of_others), CASE(type_uncommitted), CASE(bcast_roots_differ), CASE(bcast_roots_differ_large),
      CASE(bcast_root_is_own_rank), CASE(reduce_roots_differ), CASE(gather_roots_differ), CASE(scatter_roots_differ),
      CASE(gatherv_roots_differ), CASE(scatterv_roots_differ), CASE(reduce_operations_differ),
      CASE(allreduce_operations_differ), CASE(allreduce_operations_differ_large), CASE(scan_operations_differ),
      CASE(reduce_scatter_operations_differ), CASE(bcast_lengths_differ), CASE(bcast_short_root),
      CASE(allreduce_lengths_differ), CASE(gather_lengths_differ), CASE(scatter_lengths_differ),
      CASE(allgather_lengths_differ), CASE(alltoall_lengths_differ), CASE(alltoallv_counts_differ),
      CASE(gatherv_counts_differ), CASE(barrier_against_bcast), CASE(called_from_two_lines),
      CASE(reduce_against_allreduce), CASE(gather_against_scatter), CASE(allgather_against_alltoall),
      CASE(order_differs), CASE(in_place_on_one_rank), CASE(one_rank_bcasts_twice), CASE(allreduce_same_buffer),
      CASE(reduce_same_buffer), CASE(allgather_same_buffer), CASE(alltoall_same_buffer), CASE(scan_same_buffer),
      CASE(gather_same_buffer), CASE(scatter_same_buffer), CASE(allreduce_overlapping), CASE(in_place_as_result),
      CASE(in_place_in_bcast), CASE(in_place_at_gather_leaf), CASE(in_place_at_reduce_leaf),
      CASE(in_place_at_both_ends), CASE(bcast_root_is_own_rank_at_the_end), CASE(one_member_missing),
      CASE(one_rank_missing), CASE(one_rank_in_another_communicator), CASE(barrier_inside_if_root),
      CASE(send_after_collective_that_waits), CASE(communicators_crossed), CASE(loop_counts_differ),
      CASE(rank_returns_from_main), CASE(rank_exits_with_a_code), CASE(types_differ), CASE(allreduce_types_differ))
