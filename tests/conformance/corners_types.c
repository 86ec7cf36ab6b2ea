/* Rarely used semantics of datatypes, reductions, topologies and large counts: MPI-5 chapters 5, 6 and 8. */
#include "limosa_test.h"

#include <limits.h>

static void alltoallw_with_nothing_for_some(void)
{
    /* Where the count is 0, places may be anything. */
    int counts[lt_size], places[lt_size], value = lt_rank, got = -1, in_counts[lt_size], in_places[lt_size];
    MPI_Datatype types[lt_size];
    int next = (lt_rank + 1) % lt_size, previous = (lt_rank + lt_size - 1) % lt_size;
    for (int i = 0; i < lt_size; i++) {
        counts[i] = i == next;
        in_counts[i] = i == previous;
        places[i] = i == next ? 0 : -12345;
        in_places[i] = i == previous ? 0 : INT_MAX;
        types[i] = i % 2 ? MPI_INT : MPI_UINT32_T;
    }
    types[next] = MPI_INT;
    MPI_Datatype in_types[lt_size];
    for (int i = 0; i < lt_size; i++)
        in_types[i] = MPI_INT;
    OK(MPI_Alltoallw(&value, counts, places, types, &got, in_counts, in_places, in_types, MPI_COMM_WORLD));
    CHECK_INT(got, previous);
}

static void subtract(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

static void subtract_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    int length = (int)*n;
    subtract(in, inout, &length, type);
}

static int alternating(int from, int to)
{
    int result = to;
    for (int i = to - 1; i >= from; i--)
        result = i - result;
    return result;
}

static void operations_that_do_not_commute(void)
{
    MPI_Op op;
    int commutes = -1;
    OK(MPI_Op_create_c(subtract_c, 0, &op));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK_INT(commutes, 0);
    int in = 5, inout = 3;
    OK(MPI_Reduce_local(&in, &inout, 1, MPI_INT, op));
    CHECK_INT(inout, 2);
    OK(MPI_Reduce_local_c(&in, &inout, 1, MPI_INT, op));
    CHECK_INT(inout, 3);
    if (lt_size <= 2) {
        int mine = lt_rank, all = -1;
        OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, op, MPI_COMM_WORLD));
        CHECK_INT(all, alternating(0, lt_size - 1));
    }
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    MPI_Op sum = MPI_SUM;
    REFUSED(MPI_Op_free(&sum));
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    CHECK_INT(commutes, 1);
    OK(MPI_Op_commutative(MPI_REPLACE, &commutes));
    CHECK_INT(commutes, 0);
}

static void reduce_scatter_with_nothing_for_some(void)
{
    int counts[lt_size], all[3 * lt_size], got[3] = {-1, -1, -1}, before = 0, total = 0;
    for (int i = 0; i < lt_size; i++) {
        counts[i] = i % 3;
        before += i < lt_rank ? counts[i] : 0;
        total += counts[i];
    }
    for (int i = 0; i < total; i++)
        all[i] = i + lt_rank;
    OK(MPI_Reduce_scatter(all, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    int ranks = lt_size * (lt_size - 1) / 2;
    for (int i = 0; i < 3; i++)
        CHECK_INT(got[i], i < counts[lt_rank] ? lt_size * (before + i) + ranks : -1);
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < counts[lt_rank]; i++)
        CHECK_INT(all[i], lt_size * (before + i) + ranks);
}

static void types_of_no_bytes(void)
{
    MPI_Datatype nothing, marked;
    int size = -1, length = 1, value = 7, count = -1;
    MPI_Aint lb = -1, extent = -1, at = 8;
    MPI_Status status;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Type_size(nothing, &size));
    OK(MPI_Type_get_extent(nothing, &lb, &extent));
    CHECK(size == 0 && lb == 0 && extent == 0);
    OK(MPI_Sendrecv(&value, 5, nothing, lt_rank, 0, &value, 3, nothing, lt_rank, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, nothing, &count));
    CHECK_INT(count, 0);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(count, 0);
    OK(MPI_Type_create_resized(nothing, -4, 20, &marked));
    OK(MPI_Type_commit(&marked));
    OK(MPI_Type_get_extent(marked, &lb, &extent));
    CHECK(lb == -4 && extent == 20);
    OK(MPI_Type_get_true_extent(marked, &lb, &extent));
    CHECK_INT(extent, 0);
    MPI_Datatype both;
    OK(MPI_Type_create_struct(1, &length, &at, &marked, &both));
    OK(MPI_Type_get_extent(both, &lb, &extent));
    CHECK(lb == 4 && extent == 20);
    OK(MPI_Type_free(&both));
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &both));
    OK(MPI_Type_size(both, &size));
    CHECK_INT(size, 0);
    OK(MPI_Type_free(&both));
    OK(MPI_Type_free(&nothing));
    OK(MPI_Type_free(&marked));
}

static void large_counts_that_do_not_fit_small_ones(void)
{
    MPI_Datatype huge, gap;
    int size = 0, a, b, c, combiner;
    MPI_Count large = 0, lb, extent, addresses, types, counts, integers;
    OK(MPI_Type_contiguous_c((MPI_Count)3 << 31, MPI_INT, &huge));
    OK(MPI_Type_size(huge, &size));
    CHECK_INT(size, MPI_UNDEFINED);
    OK(MPI_Type_size_c(huge, &large));
    CHECK(large == (MPI_Count)12 << 31);
    OK(MPI_Type_get_extent_c(huge, &lb, &extent));
    CHECK(lb == 0 && extent == (MPI_Count)12 << 31);
    OK(MPI_Type_get_envelope_c(huge, &integers, &addresses, &counts, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_CONTIGUOUS && integers == 0 && counts == 1 && types == 1 && addresses == 0);
    REFUSED(MPI_Type_get_envelope(huge, &a, &b, &c, &combiner)); /* it was made with a large count */
    MPI_Count where[2] = {0, (MPI_Count)1 << 33}, lengths[2] = {1, 1};
    OK(MPI_Type_create_hindexed_c(2, lengths, where, MPI_INT, &gap));
    OK(MPI_Type_get_true_extent_c(gap, &lb, &extent));
    CHECK(extent == ((MPI_Count)1 << 33) + 4);
    MPI_Status status;
    OK(MPI_Status_set_elements_c(&status, MPI_INT, (MPI_Count)1 << 40));
    OK(MPI_Get_count(&status, MPI_INT, &size));
    CHECK_INT(size, MPI_UNDEFINED);
    OK(MPI_Get_count_c(&status, MPI_INT, &large));
    CHECK(large == (MPI_Count)1 << 40);
    OK(MPI_Get_elements_c(&status, MPI_INT, &large));
    CHECK(large == (MPI_Count)1 << 40);
    OK(MPI_Type_free(&huge));
    OK(MPI_Type_free(&gap));
    int in = lt_rank, out = -1;
    OK(MPI_Allreduce_c(&in, &out, (MPI_Count)1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK_INT(out, lt_size - 1);
    MPI_Count one = 1;
    MPI_Aint zero = 0;
    out = -1;
    if (lt_size == 1)
        OK(MPI_Allgatherv_c(&in, 1, MPI_INT, &out, &one, &zero, MPI_INT, MPI_COMM_WORLD));
}

static void grids_of_odd_shapes(void)
{
    MPI_Comm grid, line;
    int dims[3] = {0, 1, 0}, periods[3] = {1, 0, 0}, coords[3], rank, left, right, count;
    OK(MPI_Dims_create(lt_size, 3, dims));
    CHECK_INT(dims[0] * dims[1] * dims[2], lt_size);
    int seven[1] = {lt_size + 1};
    REFUSED(MPI_Dims_create(lt_size, 1, seven));
    REFUSED(MPI_Dims_create(lt_size, 2, (int[]){-1, 0}));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid));
    OK(MPI_Cart_coords(grid, lt_rank, 3, coords));
    OK(MPI_Cart_rank(grid, coords, &rank));
    CHECK_INT(rank, lt_rank);
    coords[0] += 5 * dims[0]; /* periodic: any coordinate will do */
    OK(MPI_Cart_rank(grid, coords, &rank));
    CHECK_INT(rank, lt_rank);
    coords[0] -= 5 * dims[0];
    coords[1] = 1;
    REFUSED(MPI_Cart_rank(grid, coords, &rank));
    OK(MPI_Cart_shift(grid, 1, 1, &left, &right));
    CHECK(left == MPI_PROC_NULL && right == MPI_PROC_NULL);
    OK(MPI_Cart_shift(grid, 0, 0, &left, &right));
    CHECK(left == lt_rank && right == lt_rank);
    OK(MPI_Cart_sub(grid, (int[]){1, 0, 0}, &line));
    OK(MPI_Comm_size(line, &count));
    CHECK_INT(count, dims[0]);
    OK(MPI_Cartdim_get(line, &count));
    CHECK_INT(count, 1);
    OK(MPI_Comm_free(&line));
    OK(MPI_Cart_sub(grid, (int[]){0, 0, 0}, &line)); /* a grid without dimensions, of each process alone */
    OK(MPI_Comm_size(line, &count));
    CHECK_INT(count, 1);
    OK(MPI_Comm_free(&line));
    OK(MPI_Comm_free(&grid));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &grid)); /* so is this, of the first process */
    CHECK((grid == MPI_COMM_NULL) == (lt_rank != 0));
    if (grid != MPI_COMM_NULL) {
        int topology;
        OK(MPI_Topo_test(grid, &topology));
        CHECK_INT(topology, MPI_CART);
        OK(MPI_Cartdim_get(grid, &count));
        CHECK_INT(count, 0);
        OK(MPI_Cart_rank(grid, NULL, &rank));
        CHECK_INT(rank, 0);
        OK(MPI_Comm_free(&grid));
    }
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){lt_size + 1}, (int[]){0}, 0, &grid));
}

static void graphs_of_neighbours_that_repeat(void)
{
    MPI_Comm graph;
    int source = lt_rank, degree = lt_rank == 0 ? 3 : 0, to[3] = {0, 0, lt_size - 1}, weights[3] = {4, 5, 6};
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, degree ? 1 : 0, &source, &degree, to, weights, MPI_INFO_NULL, 0, &graph));
    int in, out, weighted;
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(weighted);
    CHECK_INT(out, lt_rank == 0 ? 3 : 0);
    CHECK_INT(in, (lt_rank == 0 ? 2 : 0) + (lt_rank == lt_size - 1 ? 1 : 0));
    int sent[3] = {11, 12, 13}, got[3] = {-1, -1, -1};
    OK(MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, graph));
    if (lt_rank == 0 && lt_size > 1)
        CHECK((got[0] == 11 && got[1] == 12));
    else if (lt_rank == lt_size - 1 && lt_size > 1)
        CHECK_INT(got[0], 13);
    OK(MPI_Comm_free(&graph));
}

static void packing_in_the_external_form(void)
{
    char packed[64];
    MPI_Aint at = 0, size = -1;
    struct {
        short a;
        double b;
    } value = {0x0102, 1.0}, back = {0, 0};
    OK(MPI_Pack_external_size("external32", 1, MPI_DOUBLE, &size));
    CHECK_INT(size, 8);
    OK(MPI_Pack_external("external32", &value.a, 1, MPI_SHORT, packed, sizeof packed, &at));
    OK(MPI_Pack_external("external32", &value.b, 1, MPI_DOUBLE, packed, sizeof packed, &at));
    CHECK_INT(at, 10);
    CHECK(packed[0] == 1 && packed[1] == 2 && packed[2] == 0x3f && (unsigned char)packed[3] == 0xf0);
    at = 0;
    OK(MPI_Unpack_external("external32", packed, 10, &at, &back.a, 1, MPI_SHORT));
    OK(MPI_Unpack_external("external32", packed, 10, &at, &back.b, 1, MPI_DOUBLE));
    CHECK(back.a == value.a && back.b == value.b && at == 10);
    REFUSED(MPI_Unpack_external("external32", packed, 10, &at, &back.b, 1, MPI_DOUBLE));
    REFUSED(MPI_Pack_external("no such", &value.a, 1, MPI_SHORT, packed, sizeof packed, &at));
    int place = 0, bytes;
    OK(MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &bytes));
    CHECK(bytes >= 12);
    int three[3] = {1, 2, 3};
    REFUSED(MPI_Pack(three, 3, MPI_INT, packed, 8, &place, MPI_COMM_WORLD));
    CHECK_INT(place, 0);
}

static void matching_types(void)
{
    MPI_Datatype type;
    int size;
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 8);
    OK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 4);
    REFUSED(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type));
    REFUSED(MPI_Type_match_size(12345, 4, &type));
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Type_get_name(MPI_INT, name, &length));
    CHECK(!strcmp(name, "MPI_INT") && length == 7);
    MPI_Datatype pair;
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair));
    CHECK(pair == MPI_DOUBLE_INT);
    OK(MPI_Type_get_value_index(MPI_CHAR, MPI_CHAR, &pair));
    CHECK(pair == MPI_DATATYPE_NULL);
    MPI_Datatype named = MPI_INT;
    REFUSED(MPI_Type_free(&named));
    OK(MPI_Type_dup(MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_INT(length, 0);
    int one[1] = {1};
    OK(MPI_Sendrecv(one, 1, type, lt_rank, 1, &size, 1, MPI_INT, lt_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(size, 1);
    OK(MPI_Type_free(&type));
}

static void scans_in_place_and_of_one(void)
{
    int value = lt_rank + 1, before = -7;
    OK(MPI_Scan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(value, (lt_rank + 1) * (lt_rank + 2) / 2);
    value = lt_rank + 1;
    OK(MPI_Exscan(&value, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(before, lt_rank == 0 ? -7 : lt_rank * (lt_rank + 1) / 2);
    struct {
        float value;
        int index;
    } mine = {lt_rank % 2 ? 3.0f : 5.0f, lt_rank}, least;
    OK(MPI_Allreduce(&mine, &least, 1, MPI_FLOAT_INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK_INT(least.index, lt_size > 1 ? 1 : 0);
    _Bool truth = lt_rank == 0, any = 0;
    OK(MPI_Allreduce(&truth, &any, 1, MPI_C_BOOL, MPI_LXOR, MPI_COMM_WORLD));
    CHECK(any);
    REFUSED(MPI_Reduce_local(&value, &before, 1, MPI_FLOAT, MPI_BAND));
    REFUSED(MPI_Reduce_local(&value, &before, 1, MPI_INT, MPI_MINLOC));
    REFUSED(MPI_Reduce_local(&value, &before, 1, MPI_INT, MPI_REPLACE));
}

LT_MAIN("corners_types", TEST(alltoallw_with_nothing_for_some), TEST(operations_that_do_not_commute),
        TEST(reduce_scatter_with_nothing_for_some), TEST(types_of_no_bytes),
        TEST(large_counts_that_do_not_fit_small_ones), TEST(grids_of_odd_shapes),
        TEST(graphs_of_neighbours_that_repeat), TEST(packing_in_the_external_form), TEST(matching_types),
        TEST(scans_in_place_and_of_one))
