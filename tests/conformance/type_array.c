/* Subarrays and distributed arrays against element-by-element models: MPI-5 sections 5.1.3 and 5.1.4. */
#include "type_layout.h"

static void finish(const char *name, MPI_Datatype type, layout *l, MPI_Aint bytes)
{
    layout_bounds(l, 0, bytes);
    layout_compare(name, type, l);
    OK(MPI_Type_free(&type));
    layout_free(l);
}

/* The element of an array that is number `at` in storage order, as indices. */
static void indices_of(int ndims, const int *sizes, int order, long at, int *index)
{
    for (int k = 0; k < ndims; k++) {
        int d = order == MPI_ORDER_C ? ndims - 1 - k : k;
        index[d] = (int)(at % sizes[d]);
        at /= sizes[d];
    }
}

static long elements(int n, const int *sizes)
{
    long total = 1;
    for (int d = 0; d < n; d++)
        total *= sizes[d];
    return total;
}

static void subarray(void)
{
    static const struct {
        int ndims, sizes[4], sub[4], start[4];
    } cases[] = {
        {1, {10}, {4}, {3}},
        {1, {5}, {5}, {0}},
        {2, {6, 7}, {2, 3}, {1, 2}},
        {2, {6, 7}, {6, 1}, {0, 6}},
        {2, {6, 7}, {1, 7}, {5, 0}},
        {3, {4, 5, 6}, {2, 2, 3}, {1, 3, 2}},
        {3, {4, 5, 6}, {4, 5, 6}, {0, 0, 0}},
        {3, {8, 8, 8}, {1, 8, 8}, {7, 0, 0}},
        {4, {3, 2, 4, 3}, {2, 1, 2, 2}, {1, 1, 0, 1}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int way = 0; way < 4; way++) {
            int order = way % 2 ? MPI_ORDER_FORTRAN : MPI_ORDER_C, n = cases[c].ndims, index[4];
            long total = elements(n, cases[c].sizes);
            layout l = {0};
            MPI_Datatype type;
            for (long at = 0; at < total; at++) {
                int inside = 1;
                indices_of(n, cases[c].sizes, order, at, index);
                for (int d = 0; d < n; d++)
                    inside &= index[d] >= cases[c].start[d] && index[d] < cases[c].start[d] + cases[c].sub[d];
                if (inside)
                    layout_block(&l, at * 8, 8);
            }
            if (way < 2) {
                OK(MPI_Type_create_subarray(n, cases[c].sizes, cases[c].sub, cases[c].start, order, MPI_DOUBLE, &type));
            } else {
                MPI_Count sizes[4], sub[4], start[4];
                for (int d = 0; d < n; d++) {
                    sizes[d] = cases[c].sizes[d];
                    sub[d] = cases[c].sub[d];
                    start[d] = cases[c].start[d];
                }
                OK(MPI_Type_create_subarray_c(n, sizes, sub, start, order, MPI_DOUBLE, &type));
            }
            finish("subarray", type, &l, total * 8);
        }
    }
}

/* A subarray of a derived type: the old type's extent is the array's unit. */
static void subarray_of_derived(void)
{
    static const int sizes[] = {4, 5}, sub[] = {2, 3}, start[] = {1, 1};
    MPI_Datatype old, type;
    layout l = {0};
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &old));
    for (int i = 1; i < 3; i++) {
        for (int j = 1; j < 4; j++) {
            layout_block(&l, (i * 5 + j) * 12, 4);
            layout_block(&l, (i * 5 + j) * 12 + 8, 4);
        }
    }
    OK(MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, old, &type));
    OK(MPI_Type_free(&old));
    finish("subarray of derived", type, &l, 4 * 5 * 12);
}

/* The process of one dimension that owns index i. */
static int owner(int i, int size, int distribution, int argument, int processes)
{
    int block = argument;
    switch (distribution) {
    case MPI_DISTRIBUTE_NONE: return 0;
    case MPI_DISTRIBUTE_BLOCK:
        if (argument == MPI_DISTRIBUTE_DFLT_DARG)
            block = (size + processes - 1) / processes;
        return i / block;
    default:
        if (argument == MPI_DISTRIBUTE_DFLT_DARG)
            block = 1;
        return i / block % processes;
    }
}

static void darray(void)
{
    enum {
        NONE = MPI_DISTRIBUTE_NONE,
        BLOCK = MPI_DISTRIBUTE_BLOCK,
        CYCLIC = MPI_DISTRIBUTE_CYCLIC,
        DFLT = MPI_DISTRIBUTE_DFLT_DARG
    };
    static const struct {
        int ndims, sizes[3], distributions[3], arguments[3], processes[3];
    } cases[] = {
        {1, {10}, {BLOCK}, {DFLT}, {3}},
        {1, {10}, {CYCLIC}, {DFLT}, {3}},
        {1, {11}, {CYCLIC}, {2}, {2}},
        {1, {12}, {BLOCK}, {6}, {4}},
        {2, {6, 8}, {BLOCK, BLOCK}, {DFLT, DFLT}, {2, 2}},
        {2, {7, 5}, {CYCLIC, BLOCK}, {2, DFLT}, {2, 3}},
        {2, {7, 5}, {NONE, CYCLIC}, {DFLT, 2}, {1, 2}},
        {2, {9, 9}, {CYCLIC, CYCLIC}, {2, 3}, {3, 2}},
        {3, {4, 6, 5}, {BLOCK, CYCLIC, NONE}, {DFLT, DFLT, DFLT}, {2, 3, 1}},
        {3, {5, 4, 3}, {CYCLIC, NONE, BLOCK}, {3, DFLT, 2}, {2, 1, 2}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int n = cases[c].ndims, processes = (int)elements(n, cases[c].processes);
        long total = elements(n, cases[c].sizes);
        for (int rank = 0; rank < processes; rank++) {
            /* The process grid is in row-major order whatever the order of the array. */
            int place[3];
            indices_of(n, cases[c].processes, MPI_ORDER_C, rank, place);
            for (int way = 0; way < 4; way++) {
                int order = way % 2 ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
                layout l = {0};
                MPI_Datatype type;
                for (long at = 0; at < total; at++) {
                    int index[3], mine = 1;
                    indices_of(n, cases[c].sizes, order, at, index);
                    for (int d = 0; d < n; d++)
                        mine &= owner(index[d], cases[c].sizes[d], cases[c].distributions[d], cases[c].arguments[d],
                                      cases[c].processes[d]) == place[d];
                    if (mine)
                        layout_block(&l, at * 4, 4);
                }
                if (way < 2) {
                    OK(MPI_Type_create_darray(processes, rank, n, cases[c].sizes, cases[c].distributions,
                                              cases[c].arguments, cases[c].processes, order, MPI_INT, &type));
                } else {
                    MPI_Count sizes[3] = {cases[c].sizes[0], cases[c].sizes[1], cases[c].sizes[2]};
                    OK(MPI_Type_create_darray_c(processes, rank, n, sizes, cases[c].distributions, cases[c].arguments,
                                                cases[c].processes, order, MPI_INT, &type));
                }
                finish("darray", type, &l, total * 4);
            }
        }
    }
}

/* A whole array put together from the parts of all processes of a grid. */
static void darray_gathers(void)
{
    enum { ROWS = 12, COLUMNS = 10 };
    int sizes[] = {ROWS, COLUMNS}, distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, grid[2] = {0, 0};
    int arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, whole[ROWS * COLUMNS], mine[ROWS * COLUMNS], size = 0;
    OK(MPI_Dims_create(lt_size, 2, grid));
    MPI_Datatype type;
    MPI_Request request;
    OK(MPI_Type_create_darray(lt_size, lt_rank, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_size(type, &size));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        mine[i] = lt_rank * 1000 + i;
    OK(MPI_Isend(mine, 1, type, 0, 3, MPI_COMM_WORLD, &request));
    if (lt_rank == 0) {
        memset(whole, 0xff, sizeof whole);
        for (int rank = 0; rank < lt_size; rank++) {
            MPI_Datatype theirs;
            OK(MPI_Type_create_darray(lt_size, rank, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT,
                                      &theirs));
            OK(MPI_Type_commit(&theirs));
            OK(MPI_Recv(whole, 1, theirs, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Type_free(&theirs));
        }
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            int row = owner(i / COLUMNS, ROWS, MPI_DISTRIBUTE_CYCLIC, 2, grid[0]);
            int column = owner(i % COLUMNS, COLUMNS, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, grid[1]);
            CHECK_INT(whole[i], (row * grid[1] + column) * 1000 + i);
        }
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&type));
}

/* The ghost layers of a 3-D block, as a stencil code exchanges them. */
static void halo(void)
{
    enum { N = 10 };
    static double block[N][N][N];
    static const int sizes[] = {N, N, N};
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int axis = 0; axis < 3; axis++) {
        int sub[] = {N - 2, N - 2, N - 2}, last[] = {1, 1, 1}, ghost[] = {1, 1, 1};
        MPI_Datatype face, shadow;
        for (int i = 0; i < N * N * N; i++)
            (&block[0][0][0])[i] = lt_rank * 1e6 + i;
        sub[axis] = 1;
        last[axis] = N - 2;
        ghost[axis] = 0;
        OK(MPI_Type_create_subarray(3, sizes, sub, last, MPI_ORDER_C, MPI_DOUBLE, &face));
        OK(MPI_Type_create_subarray(3, sizes, sub, ghost, MPI_ORDER_C, MPI_DOUBLE, &shadow));
        OK(MPI_Type_commit(&face));
        OK(MPI_Type_commit(&shadow));
        OK(MPI_Sendrecv(block, 1, face, to, axis, block, 1, shadow, from, axis, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++) {
                for (int k = 0; k < N; k++) {
                    int index[] = {i, j, k}, in_shadow = 1;
                    for (int d = 0; d < 3; d++)
                        in_shadow &= d == axis ? index[d] == 0 : index[d] >= 1 && index[d] <= N - 2;
                    if (in_shadow)
                        index[axis] = N - 2;
                    double expected = (in_shadow ? from : lt_rank) * 1e6 + (index[0] * N + index[1]) * N + index[2];
                    CHECK(block[i][j][k] == expected);
                }
            }
        }
        OK(MPI_Type_free(&face));
        OK(MPI_Type_free(&shadow));
    }
}

LT_MAIN("type_array", TEST(subarray), TEST(subarray_of_derived), TEST(darray), TEST(darray_gathers), TEST(halo))
