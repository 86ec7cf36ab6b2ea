/* Reduce, allreduce, reduce-scatter, scan and exscan with predefined and user-defined operations: MPI-5 sections 6.9
 * to 6.11. */
#include "coll.h"

#include <unistd.h>

/* Sum over ranks [0, last] of value(r, 0, i), as integers wrap. */
static int sum_to(int last, int i)
{
    unsigned sum = 0;
    for (int r = 0; r <= last; r++)
        sum += (unsigned)value(r, 0, i) & 0xffffff;
    return (int)sum;
}

static int *input(int n)
{
    int *b = buffer(0, n);
    for (int i = 0; i < n; i++)
        b[i] = value(rank, 0, i) & 0xffffff;
    return b;
}

static void check_sums(int line, const int *got, int n, int last, int first)
{
    lt_count_check();
    for (int i = 0; i < n; i++) {
        if (!same(__FILE__, line, got, 0, i, sum_to(last, first + i)))
            return;
    }
}

#define CHECK_SUMS(got, n, last, first) check_sums(__LINE__, (got), (n), (last), (first))

static void reduce(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 3; way++) {
                int n = counts[c], *out = input(n), *in = rank == root ? buffer(0, n) : NULL;
                if (way == 0) {
                    OK(MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, comm));
                } else if (way == 1) {
                    OK(MPI_Reduce_c(out, in, n, MPI_INT, MPI_SUM, root, comm));
                } else if (rank == root) {
                    memcpy(in, out, sizeof(int) * (size_t)n);
                    OK(MPI_Reduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, root, comm));
                } else {
                    OK(MPI_Reduce(out, NULL, n, MPI_INT, MPI_SUM, root, comm));
                }
                if (rank == root) {
                    CHECK_SUMS(in, n, size - 1, 0);
                    GOT_GAP(in, 0, n, 2);
                }
                int *again = input(n);
                CHECK_BYTES(out, again, sizeof(int) * (size_t)n);
                free(out);
                free(in);
                free(again);
            }
        }
    }
}

static void allreduce(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 3; way++) {
            int n = counts[c], *out = input(n), *in = buffer(0, n);
            if (way == 2)
                memcpy(in, out, sizeof(int) * (size_t)n);
            OK(way == 0   ? MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comm)
               : way == 1 ? MPI_Allreduce_c(out, in, n, MPI_INT, MPI_SUM, comm)
                          : MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
            CHECK_SUMS(in, n, size - 1, 0);
            GOT_GAP(in, 0, n, 2);
            free(out);
            free(in);
        }
    }
}

static void reduce_scatter_block(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 3; way++) {
            int n = counts[c] / (c == N_COUNTS - 1 ? size : 1), all = n * size, *out = input(all),
                *in = buffer(0, way == 2 ? all : n);
            if (way == 2)
                memcpy(in, out, sizeof(int) * (size_t)all);
            OK(way == 0   ? MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, comm)
               : way == 1 ? MPI_Reduce_scatter_block_c(out, in, n, MPI_INT, MPI_SUM, comm)
                          : MPI_Reduce_scatter_block(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
            CHECK_SUMS(in, n, size - 1, rank * n);
            if (way < 2)
                GOT_GAP(in, 0, n, 2);
            free(out);
            free(in);
        }
    }
}

static void reduce_scatter(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 3; way++) {
            int n[256], all = 0, first = 0;
            MPI_Count n_c[256];
            for (int r = 0; r < size; r++) {
                n_c[r] = n[r] = r % 3 == 1 ? 0 : counts[c] * (r + 1) / (size * size);
                first += r < rank ? n[r] : 0;
                all += n[r];
            }
            int *out = input(all), *in = buffer(0, way == 2 ? all : n[rank]);
            if (way == 2)
                memcpy(in, out, sizeof(int) * (size_t)all);
            OK(way == 0   ? MPI_Reduce_scatter(out, in, n, MPI_INT, MPI_SUM, comm)
               : way == 1 ? MPI_Reduce_scatter_c(out, in, n_c, MPI_INT, MPI_SUM, comm)
                          : MPI_Reduce_scatter(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
            CHECK_SUMS(in, n[rank], size - 1, first);
            if (way < 2)
                GOT_GAP(in, 0, n[rank], 2);
            free(out);
            free(in);
        }
    }
}

static void scans(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 3; way++) {
            int n = counts[c], *out = input(n), *in = buffer(0, n), *before = buffer(0, n);
            if (way == 2) {
                memcpy(in, out, sizeof(int) * (size_t)n);
                memcpy(before, out, sizeof(int) * (size_t)n);
            }
            OK(way == 0   ? MPI_Scan(out, in, n, MPI_INT, MPI_SUM, comm)
               : way == 1 ? MPI_Scan_c(out, in, n, MPI_INT, MPI_SUM, comm)
                          : MPI_Scan(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
            CHECK_SUMS(in, n, rank, 0);
            GOT_GAP(in, 0, n, 2);
            OK(way == 0   ? MPI_Exscan(out, before, n, MPI_INT, MPI_SUM, comm)
               : way == 1 ? MPI_Exscan_c(out, before, n, MPI_INT, MPI_SUM, comm)
                          : MPI_Exscan(MPI_IN_PLACE, before, n, MPI_INT, MPI_SUM, comm));
            /* On rank 0 the result is undefined. */
            if (rank > 0)
                CHECK_SUMS(before, n, rank - 1, 0);
            GOT_GAP(before, 0, n, 2);
            free(out);
            free(in);
            free(before);
        }
    }
}

/* An operation that is associative and not commutative: 2 x 2 integer matrices. */
typedef struct {
    unsigned a, b, c, d;
} matrix;

static matrix multiply(matrix x, matrix y)
{
    return (matrix){x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
}

static MPI_Datatype expected_type;

static void matrix_product(void *in, void *inout, int *n, MPI_Datatype *type)
{
    matrix *x = in, *y = inout;
    if (*type != expected_type)
        lt_fail(__FILE__, __LINE__, "the user function got another datatype than the call");
    for (int i = 0; i < *n; i++)
        y[i] = multiply(x[i], y[i]);
}

static void matrix_product_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    int count = (int)*n;
    matrix_product(in, inout, &count, type);
}

static matrix element(int r, int i)
{
    unsigned x = (unsigned)(r * 31 + i * 7 + 1);
    return (matrix){1 + x % 5, x % 3, 1 + x % 2, 2 + x % 7};
}

static matrix product(int last, int i)
{
    matrix m = element(0, i);
    for (int r = 1; r <= last; r++)
        m = multiply(m, element(r, i));
    return m;
}

static void order_is_kept(void)
{
    enum { MOST = 3000 };
    static const int few[] = {0, 1, 13, MOST};
    MPI_Op ops[2];
    MPI_Datatype type;
    int commutes = -1;
    OK(MPI_Type_contiguous(4, MPI_UNSIGNED, &type));
    OK(MPI_Type_commit(&type));
    expected_type = type;
    OK(MPI_Op_create(matrix_product, 0, &ops[0]));
    OK(MPI_Op_create_c(matrix_product_c, 0, &ops[1]));
    OK(MPI_Op_commutative(ops[0], &commutes));
    CHECK_INT(commutes, 0);
    matrix *out = lt_alloc(sizeof(matrix) * MOST * (size_t)size), *in = lt_alloc(sizeof(matrix) * MOST * (size_t)size),
           m;
    for (int c = 0; c < 4; c++) {
        for (int k = 0; k < 2; k++) {
            int n = few[c];
            for (int i = 0; i < n * size; i++)
                out[i] = element(rank, i);
            for (int root = 0; root < size; root++) {
                memset(in, 0, sizeof(matrix) * (size_t)n);
                OK(MPI_Reduce(out, in, n, type, ops[k], root, comm));
                for (int i = 0; i < n && rank == root; i++) {
                    m = product(size - 1, i);
                    CHECK_BYTES(&in[i], &m, sizeof m);
                }
            }
            OK(MPI_Allreduce(out, in, n, type, ops[k], comm));
            for (int i = 0; i < n; i++) {
                m = product(size - 1, i);
                CHECK_BYTES(&in[i], &m, sizeof m);
            }
            OK(MPI_Scan(out, in, n, type, ops[k], comm));
            for (int i = 0; i < n; i++) {
                m = product(rank, i);
                CHECK_BYTES(&in[i], &m, sizeof m);
            }
            OK(MPI_Exscan(out, in, n, type, ops[k], comm));
            for (int i = 0; i < n && rank > 0; i++) {
                m = product(rank - 1, i);
                CHECK_BYTES(&in[i], &m, sizeof m);
            }
            OK(MPI_Reduce_scatter_block(out, in, n, type, ops[k], comm));
            for (int i = 0; i < n; i++) {
                m = product(size - 1, rank * n + i);
                CHECK_BYTES(&in[i], &m, sizeof m);
            }
            int blocks[256], first = 0;
            for (int r = 0; r < size; r++) {
                blocks[r] = (r + 1) * n / size;
                first += r < rank ? blocks[r] : 0;
            }
            OK(MPI_Reduce_scatter(out, in, blocks, type, ops[k], comm));
            for (int i = 0; i < blocks[rank]; i++) {
                m = product(size - 1, first + i);
                CHECK_BYTES(&in[i], &m, sizeof m);
            }
        }
    }
    free(out);
    free(in);
    OK(MPI_Op_free(&ops[0]));
    OK(MPI_Op_free(&ops[1]));
    CHECK_PTR(ops[0], MPI_OP_NULL);
    OK(MPI_Type_free(&type));
}

/* A commutative user operation over a type with gaps: the gaps stay as they are. */
static void largest(void *in, void *inout, int *n, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(*type, &lb, &extent));
    for (int i = 0; i < *n; i++) {
        int *x = (int *)((char *)in + i * extent), *y = (int *)((char *)inout + i * extent);
        *y = *x > *y ? *x : *y;
    }
}

static void user_operation_with_gaps(void)
{
    MPI_Op op;
    int n = 500, commutes = 0, *out = buffer(1, n), *in = buffer(1, n);
    OK(MPI_Op_create(largest, 1, &op));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK_INT(commutes, 1);
    for (int i = 0; i < n; i++)
        put(out, 1, i, (rank * 7 + i) % size);
    OK(MPI_Allreduce(out, in, n, shapes[1], op, comm));
    for (int i = 0; i < n; i++) {
        int expected = 0;
        for (int r = 0; r < size; r++)
            expected = (r * 7 + i) % size > expected ? (r * 7 + i) % size : expected;
        if (!same(__FILE__, __LINE__, in, 1, i, expected))
            break;
    }
    GOT_GAP(in, 0, 2 * n, 2);
    OK(MPI_Op_free(&op));
    free(out);
    free(in);
}

/* Operations are free of each other: a long row of small ones with different roots, counts and kinds. */
static void in_a_row(void)
{
    for (int i = 0; i < 300; i++) {
        int in = rank + i, sum = 0, root = i % size;
        if (i % 3 == 0) {
            OK(MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK_INT(sum, size * (size - 1) / 2 + i * size);
        } else if (i % 3 == 1) {
            OK(MPI_Reduce(&in, &sum, 1, MPI_INT, MPI_SUM, root, comm));
            CHECK_INT(sum, rank == root ? size * (size - 1) / 2 + i * size : 0);
        } else {
            OK(MPI_Scan(&in, &sum, 1, MPI_INT, MPI_MAX, comm));
            CHECK_INT(sum, rank + i);
        }
    }
}

/* Ranks whose results do not need all others run ahead of one that is late, many operations and more than any memory
 * between them holds. */
static void running_ahead(void)
{
    enum { ROW = 400, MOST = 40 };
    int shares[64] = {1};
    for (int late = 0; late < size; late += size > 1 ? size - 1 : 1) {
        for (int i = 0; i < ROW; i++) {
            int n = i % 5 == 4 ? MOST : 1, out[MOST], in[MOST], got = -1;
            if (rank == late && i % 100 == 0)
                usleep(3000);
            for (int k = 0; k < n; k++)
                out[k] = rank + i + k;
            OK(MPI_Scan(out, in, n, MPI_INT, MPI_SUM, comm));
            CHECK_INT(in[n - 1], rank * (rank + 1) / 2 + (rank + 1) * (i + n - 1));
            OK(MPI_Exscan(out, in, n, MPI_INT, MPI_SUM, comm));
            if (rank > 0)
                CHECK_INT(in[n - 1], rank * (rank - 1) / 2 + rank * (i + n - 1));
            OK(MPI_Reduce_scatter(out, &got, shares, MPI_INT, MPI_SUM, comm));
            CHECK_INT(got, rank == 0 ? size * (size - 1) / 2 + i * size : -1);
        }
    }
}

/* Floating-point sums are the same bits on every rank, and in every repetition. */
static void reproducible(void)
{
    enum { N = 5000 };
    static double out[N], in[N], again[N], theirs[N];
    for (int i = 0; i < N; i++)
        out[i] = 1.0 / (1 + i + rank * 17) * (i % 2 ? 1e10 : 1e-10);
    OK(MPI_Allreduce(out, in, N, MPI_DOUBLE, MPI_SUM, comm));
    for (int round = 0; round < 5; round++) {
        OK(MPI_Allreduce(out, again, N, MPI_DOUBLE, MPI_SUM, comm));
        CHECK_BYTES(again, in, sizeof in);
    }
    memcpy(theirs, in, sizeof in);
    OK(MPI_Bcast(theirs, N, MPI_DOUBLE, 0, comm));
    CHECK_BYTES(in, theirs, sizeof in);
}

/* Long operands in communicators whose ranks have another order than those of the job, on hosts too. */
static void long_operands_in_any_order(void)
{
    enum { N = 200000 };
    int world, all, *out = lt_alloc(sizeof(int) * N), *in = lt_alloc(sizeof(int) * N);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    for (int order = 0; order < 3; order++) {
        MPI_Comm other;
        int keys[] = {world, -world, (world + 1) % all}, me;
        OK(MPI_Comm_split(MPI_COMM_WORLD, 0, keys[order], &other));
        OK(MPI_Comm_rank(other, &me));
        for (int root = -1; root < all; root++) {
            for (int i = 0; i < N; i++) {
                out[i] = (me + 1) * (i % 1000 + 1);
                in[i] = -1;
            }
            OK(root < 0 ? MPI_Allreduce(out, in, N, MPI_INT, MPI_SUM, other)
                        : MPI_Reduce(out, in, N, MPI_INT, MPI_SUM, root, other));
            lt_count_check();
            for (int i = 0; i < N && (root < 0 || root == me); i++) {
                if (!same(__FILE__, __LINE__, in, 0, i, all * (all + 1) / 2 * (i % 1000 + 1)))
                    break;
            }
        }
        OK(MPI_Comm_free(&other));
    }
    free(out);
    free(in);
}

#define ON_ALL(name)                                                                                                   \
    static void name##_on_all(void)                                                                                    \
    {                                                                                                                  \
        on_all(name);                                                                                                  \
    }
ON_ALL(reduce)
ON_ALL(allreduce)
ON_ALL(reduce_scatter_block)
ON_ALL(reduce_scatter)
ON_ALL(scans)
ON_ALL(order_is_kept)
ON_ALL(user_operation_with_gaps)
ON_ALL(in_a_row)
ON_ALL(running_ahead)
ON_ALL(reproducible)

LT_MAIN("coll_reduce", TEST(make_shapes), TEST(reduce_on_all), TEST(allreduce_on_all),
        TEST(reduce_scatter_block_on_all), TEST(reduce_scatter_on_all), TEST(scans_on_all), TEST(order_is_kept_on_all),
        TEST(user_operation_with_gaps_on_all), TEST(in_a_row_on_all), TEST(running_ahead_on_all),
        TEST(reproducible_on_all), TEST(long_operands_in_any_order), TEST(free_shapes))
