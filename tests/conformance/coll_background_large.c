/* Large reductions in the background have the bits of the blocking ones: MPI-5 sections 6.9, 6.12 and 6.13. */
#include "limosa_test.h"

enum { KINDS = 6 };

static double *operands(long n)
{
    double *all = lt_alloc(sizeof(double) * (size_t)n);
    for (long i = 0; i < n; i++)
        all[i] = 1.0 / (double)(lt_rank * 7 + i % 1013 + 1);
    return all;
}

static void blocking(int kind, const void *out, double *in, const int *counts, int n)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind) {
    case 0:
        OK(MPI_Reduce(lt_rank == lt_size / 2 ? out
                      : out == MPI_IN_PLACE  ? in
                                             : out,
                      in, n, MPI_DOUBLE, MPI_SUM, lt_size / 2, comm));
        break;
    case 1: OK(MPI_Allreduce(out, in, n, MPI_DOUBLE, MPI_SUM, comm)); break;
    case 2: OK(MPI_Scan(out, in, n, MPI_DOUBLE, MPI_SUM, comm)); break;
    case 3: OK(MPI_Exscan(out, in, n, MPI_DOUBLE, MPI_SUM, comm)); break;
    case 4: OK(MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, comm)); break;
    case 5: OK(MPI_Reduce_scatter_block(out, in, n / lt_size, MPI_DOUBLE, MPI_SUM, comm)); break;
    }
}

static void nonblocking(int kind, const void *out, double *in, const int *counts, int n, MPI_Request *q)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind) {
    case 0:
        OK(MPI_Ireduce(lt_rank == lt_size / 2 ? out
                       : out == MPI_IN_PLACE  ? in
                                              : out,
                       in, n, MPI_DOUBLE, MPI_SUM, lt_size / 2, comm, q));
        break;
    case 1: OK(MPI_Iallreduce(out, in, n, MPI_DOUBLE, MPI_SUM, comm, q)); break;
    case 2: OK(MPI_Iscan(out, in, n, MPI_DOUBLE, MPI_SUM, comm, q)); break;
    case 3: OK(MPI_Iexscan(out, in, n, MPI_DOUBLE, MPI_SUM, comm, q)); break;
    case 4: OK(MPI_Ireduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, comm, q)); break;
    case 5: OK(MPI_Ireduce_scatter_block(out, in, n / lt_size, MPI_DOUBLE, MPI_SUM, comm, q)); break;
    }
}

static void persistent(int kind, const void *out, double *in, const int *counts, int n, MPI_Request *q)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info info = MPI_INFO_NULL;
    switch (kind) {
    case 0:
        OK(MPI_Reduce_init(lt_rank == lt_size / 2 ? out
                           : out == MPI_IN_PLACE  ? in
                                                  : out,
                           in, n, MPI_DOUBLE, MPI_SUM, lt_size / 2, comm, info, q));
        break;
    case 1: OK(MPI_Allreduce_init(out, in, n, MPI_DOUBLE, MPI_SUM, comm, info, q)); break;
    case 2: OK(MPI_Scan_init(out, in, n, MPI_DOUBLE, MPI_SUM, comm, info, q)); break;
    case 3: OK(MPI_Exscan_init(out, in, n, MPI_DOUBLE, MPI_SUM, comm, info, q)); break;
    case 4: OK(MPI_Reduce_scatter_init(out, in, counts, MPI_DOUBLE, MPI_SUM, comm, info, q)); break;
    case 5: OK(MPI_Reduce_scatter_block_init(out, in, n / lt_size, MPI_DOUBLE, MPI_SUM, comm, info, q)); break;
    }
}

/* Elements of the result that mean something here. Scans of more than two ranks associate otherwise in the background.
 */
static long results(int kind, const int *counts, int n)
{
    if ((kind == 2 || kind == 3) && lt_size > 2)
        return 0;
    if ((kind == 0 && lt_rank != lt_size / 2) || (kind == 3 && lt_rank == 0))
        return 0;
    return kind == 4 ? counts[lt_rank] : kind == 5 ? n / lt_size : n;
}

static void same_bits(int in_place)
{
    const int lengths[] = {8 << 10, (8 << 10) + 60, 50000, 128 << 10, 1 << 20};
    int *counts = lt_alloc(sizeof(int) * (size_t)lt_size);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int n = lengths[l] / lt_size * lt_size;
        size_t bytes = sizeof(double) * (size_t)n;
        double *mine = operands(n), *wanted = lt_alloc(bytes), *got = lt_alloc(bytes);
        const void *out = in_place ? MPI_IN_PLACE : mine;
        for (int r = 0; r < lt_size; r++)
            counts[r] = n / lt_size;
        counts[0] -= lt_size > 1 ? counts[0] : 0;
        counts[lt_size - 1] += lt_size > 1 ? n / lt_size : 0;
        for (int kind = 0; kind < KINDS; kind++) {
            MPI_Request request;
            size_t meant = sizeof(double) * (size_t)results(kind, counts, n);
            memcpy(wanted, mine, bytes);
            blocking(kind, out, wanted, counts, n);
            memcpy(got, mine, bytes);
            nonblocking(kind, out, got, counts, n, &request);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_BYTES(got, wanted, meant);
            persistent(kind, out, got, counts, n, &request);
            for (int again = 0; again < 2; again++) {
                memcpy(got, mine, bytes);
                OK(MPI_Start(&request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                CHECK_BYTES(got, wanted, meant);
            }
            OK(MPI_Request_free(&request));
        }
        free(mine);
        free(wanted);
        free(got);
    }
    free(counts);
}

static void apart(void)
{
    same_bits(0);
}

static void in_place(void)
{
    same_bits(1);
}

/* Values with an index have gaps, which no rank reads or writes. */
static void with_gaps(void)
{
    typedef struct {
        double value;
        int index;
    } pair;
    long n = 40000;
    pair *mine = calloc((size_t)n, sizeof *mine), *got = calloc((size_t)n, sizeof *got);
    MPI_Request request;
    for (long i = 0; i < n; i++)
        mine[i] = (pair){(double)((i * 31 + lt_rank * 17) % 101), lt_rank};
    OK(MPI_Iallreduce(mine, got, (int)n, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    lt_count_check();
    for (long i = 0; i < n; i++) {
        pair best = {-1, 0};
        for (int r = 0; r < lt_size; r++) {
            double value = (double)((i * 31 + r * 17) % 101);
            if (value > best.value)
                best = (pair){value, r};
        }
        if (got[i].value != best.value || got[i].index != best.index) {
            lt_fail(__FILE__, __LINE__, "element %ld: expected (%g, %d), got (%g, %d)", i, best.value, best.index,
                    got[i].value, got[i].index);
            break;
        }
    }
    free(mine);
    free(got);
}

LT_MAIN("coll_background_large", TEST(apart), TEST(in_place), TEST(with_gaps))
