/* Cartesian topologies: MPI-5 sections 8.5.1, 8.5.2, 8.5.6 and the neighbour exchange that they are for. */
#include "limosa_test.h"

static int product(int n, const int *dims)
{
    int p = 1;
    for (int d = 0; d < n; d++)
        p *= dims[d];
    return p;
}

static void dims_create(void)
{
    static const struct {
        int nodes, n, in[5], out[5];
    } cases[] = {
        {6, 2, {0, 0}, {3, 2}},
        {7, 2, {0, 0}, {7, 1}},
        {6, 3, {0, 3, 0}, {2, 3, 1}},
        {12, 3, {0, 0, 0}, {3, 2, 2}},
        {1, 3, {0, 0, 0}, {1, 1, 1}},
        {16, 2, {0, 0}, {4, 4}},
        {64, 3, {0, 0, 0}, {4, 4, 4}},
        {24, 3, {0, 0, 0}, {4, 3, 2}},
        {30, 2, {0, 0}, {6, 5}},
        {36, 2, {0, 0}, {6, 6}},
        {1000, 3, {0, 0, 0}, {10, 10, 10}},
        {8, 3, {2, 2, 2}, {2, 2, 2}},
        {60, 3, {0, 5, 0}, {4, 5, 3}},
        {97, 1, {0}, {97}},
        {4, 4, {0, 0, 0, 0}, {2, 2, 1, 1}},
        {10, 2, {5, 0}, {5, 2}},
        {1024, 5, {0}, {4, 4, 4, 4, 4}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int dims[5];
        memcpy(dims, cases[c].in, sizeof dims);
        OK(MPI_Dims_create(cases[c].nodes, cases[c].n, dims));
        for (int d = 0; d < cases[c].n; d++) {
            if (dims[d] != cases[c].out[d])
                lt_fail(__FILE__, __LINE__, "%d nodes in %d dimensions: dimension %d: expected %d, got %d",
                        cases[c].nodes, cases[c].n, d, cases[c].out[d], dims[d]);
            lt_count_check();
        }
    }
    for (int nodes = 1; nodes <= 200; nodes++) {
        for (int n = 1; n <= 4; n++) {
            int dims[4] = {0};
            OK(MPI_Dims_create(nodes, n, dims));
            CHECK_INT(product(n, dims), nodes);
            for (int d = 1; d < n; d++)
                CHECK(dims[d] <= dims[d - 1]);
        }
    }
    int odd[] = {0, 4}, negative[] = {-1, 0}, full[] = {2, 3};
    REFUSED(MPI_Dims_create(7, 2, odd));
    REFUSED(MPI_Dims_create(6, 2, negative));
    REFUSED(MPI_Dims_create(7, 2, full));
    OK(MPI_Dims_create(1, 0, NULL));
}

/* Creation, inquiry, ranks and coordinates (row-major), shifts, for a grid of all ranks. */
static void check_grid(int n, const int *dims, const int *periods)
{
    MPI_Comm cart = MPI_COMM_NULL;
    OK(MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, 0, &cart));
    if (lt_rank >= product(n, dims)) {
        CHECK_PTR(cart, MPI_COMM_NULL);
        return;
    }
    int kind = -1, got_n = -1, got_dims[4], got_periods[4], coords[4], rank = -1, size = -1, back = -1;
    OK(MPI_Topo_test(cart, &kind));
    CHECK_INT(kind, MPI_CART);
    OK(MPI_Cartdim_get(cart, &got_n));
    CHECK_INT(got_n, n);
    OK(MPI_Comm_size(cart, &size));
    CHECK_INT(size, product(n, dims));
    OK(MPI_Comm_rank(cart, &rank));
    CHECK_INT(rank, lt_rank);
    OK(MPI_Cart_get(cart, n, got_dims, got_periods, coords));
    for (int d = 0, rest = rank, stride = size; d < n; d++) {
        stride /= dims[d];
        CHECK_INT(got_dims[d], dims[d]);
        CHECK_INT(!!got_periods[d], periods[d]);
        CHECK_INT(coords[d], rest / stride);
        rest %= stride;
    }
    for (int r = 0; r < size; r++) {
        int c[4];
        OK(MPI_Cart_coords(cart, r, n, c));
        OK(MPI_Cart_rank(cart, c, &back));
        CHECK_INT(back, r);
        for (int d = 0; d < n; d++) {
            /* Outside a periodic dimension one comes back in, otherwise it is an error. */
            int outside[4];
            memcpy(outside, c, sizeof c);
            outside[d] += dims[d];
            if (periods[d]) {
                OK(MPI_Cart_rank(cart, outside, &back));
                CHECK_INT(back, r);
                outside[d] -= 3 * dims[d];
                OK(MPI_Cart_rank(cart, outside, &back));
                CHECK_INT(back, r);
            } else {
                REFUSED(MPI_Cart_rank(cart, outside, &back));
            }
        }
    }
    for (int d = 0; d < n; d++) {
        for (int step = -3; step <= 3; step++) {
            int source = -9, destination = -9, expected[2];
            OK(MPI_Cart_shift(cart, d, step, &source, &destination));
            for (int side = 0; side < 2; side++) {
                int c[4];
                memcpy(c, coords, sizeof c);
                c[d] += side ? step : -step;
                if (periods[d])
                    c[d] = ((c[d] % dims[d]) + dims[d]) % dims[d];
                expected[side] = MPI_PROC_NULL;
                if (c[d] >= 0 && c[d] < dims[d]) {
                    expected[side] = 0;
                    for (int k = 0; k < n; k++)
                        expected[side] = expected[side] * dims[k] + c[k];
                }
            }
            CHECK_INT(source, expected[0]);
            CHECK_INT(destination, expected[1]);
            /* The neighbour exchange, with no rank beyond the border. */
            int in = -1;
            OK(MPI_Sendrecv(&rank, 1, MPI_INT, destination, d, &in, 1, MPI_INT, source, d, cart, MPI_STATUS_IGNORE));
            CHECK_INT(in, source == MPI_PROC_NULL ? -1 : source);
        }
    }
    /* Every subset of the dimensions makes subgrids. */
    for (int mask = 0; mask < 1 << n; mask++) {
        int remain[4], m = 0, sub_dims[4], sub_periods[4], sub_coords[4];
        MPI_Comm sub;
        for (int d = 0; d < n; d++)
            remain[d] = mask >> d & 1;
        OK(MPI_Cart_sub(cart, remain, &sub));
        OK(MPI_Cartdim_get(sub, &m));
        OK(MPI_Cart_get(sub, m, sub_dims, sub_periods, sub_coords));
        int k = 0;
        for (int d = 0; d < n; d++) {
            if (remain[d]) {
                CHECK_INT(sub_dims[k], dims[d]);
                CHECK_INT(!!sub_periods[k], periods[d]);
                CHECK_INT(sub_coords[k], coords[d]);
                k++;
            }
        }
        CHECK_INT(m, k);
        OK(MPI_Comm_size(sub, &size));
        CHECK_INT(size, product(m, sub_dims));
        /* The members agree in all dimensions that were dropped: the sum of their places is that of one line. */
        int dropped = 0, most = -1, least = -1;
        for (int d = 0; d < n; d++)
            dropped = remain[d] ? dropped : dropped * 10 + coords[d];
        OK(MPI_Allreduce(&dropped, &most, 1, MPI_INT, MPI_MAX, sub));
        OK(MPI_Allreduce(&dropped, &least, 1, MPI_INT, MPI_MIN, sub));
        CHECK_INT(most, least);
        OK(MPI_Comm_free(&sub));
    }
    /* A duplicate has the topology too. */
    MPI_Comm dup;
    OK(MPI_Comm_dup(cart, &dup));
    OK(MPI_Topo_test(dup, &kind));
    CHECK_INT(kind, MPI_CART);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&cart));
}

static void grids(void)
{
    for (int n = 1; n <= 3; n++) {
        int dims[3] = {0};
        OK(MPI_Dims_create(lt_size, n, dims));
        for (int mask = 0; mask < 1 << n; mask++) {
            int periods[3] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1};
            check_grid(n, dims, periods);
        }
    }
}

static void smaller_and_larger_grids(void)
{
    MPI_Comm cart;
    int too_many = lt_size + 1, period = 0;
    if (lt_size > 1) {
        int fewer = lt_size - 1;
        check_grid(1, &fewer, &period);
    }
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 1, &too_many, &period, 0, &cart));
    int negative = -2;
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 1, &negative, &period, 0, &cart));
}

/* A grid without dimensions is one process. */
static void no_dimensions(void)
{
    MPI_Comm cart = MPI_COMM_WORLD;
    int n = -1, size = -1, rank = -1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &cart));
    if (lt_rank == 0) {
        OK(MPI_Cartdim_get(cart, &n));
        CHECK_INT(n, 0);
        OK(MPI_Comm_size(cart, &size));
        CHECK_INT(size, 1);
        OK(MPI_Cart_rank(cart, NULL, &rank));
        CHECK_INT(rank, 0);
        OK(MPI_Comm_free(&cart));
    } else {
        CHECK_PTR(cart, MPI_COMM_NULL);
    }
}

static void without_topology(void)
{
    int kind = -1, n, coords[1], source, destination;
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK_INT(kind, MPI_UNDEFINED);
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_coords(MPI_COMM_WORLD, 0, 1, coords));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, &source, &destination));
}

static void map(void)
{
    int dims[] = {lt_size}, periods[] = {0}, rank = -5, fewer[] = {1};
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &rank));
    CHECK(rank >= 0 && rank < lt_size);
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, fewer, periods, &rank));
    CHECK(rank == 0 || rank == MPI_UNDEFINED);
}

LT_MAIN("cart", TEST(dims_create), TEST(grids), TEST(smaller_and_larger_grids), TEST(no_dimensions),
        TEST(without_topology), TEST(map))
