/* Large reductions in the background have the bits of the blocking ones: MPI-5 sections 6.9, 6.12 and 6.13. */
#include "limosa_test.h"

#include <sys/resource.h>

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

/* In the order of ranks: the affine functions x -> a x + b, in turn, modulo 2^64. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    unsigned long long *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++, left += 2, right += 2) {
        right[1] += right[0] * left[1];
        right[0] *= left[0];
    }
}

/* A function of the program that does not commute; several operations at a time, completed in any order. */
static void by_the_program(void)
{
    enum { N = 30000, AT_ONCE = 3 };
    MPI_Op op;
    MPI_Datatype function;
    MPI_Request requests[AT_ONCE];
    unsigned long long (*mine)[2] = lt_alloc(sizeof *mine * N), (*got)[AT_ONCE][N][2] = lt_alloc(sizeof *got);
    OK(MPI_Op_create(compose, 0, &op));
    OK(MPI_Type_contiguous(2, MPI_UINT64_T, &function));
    OK(MPI_Type_commit(&function));
    for (int i = 0; i < N; i++)
        mine[i][0] = (unsigned)(2 * i + lt_rank + 1), mine[i][1] = (unsigned)(i * lt_rank);
    for (int k = 0; k < AT_ONCE; k++)
        OK(MPI_Iallreduce(mine, (*got)[k], N, function, op, MPI_COMM_WORLD, &requests[k]));
    for (int k = 0, done; k < AT_ONCE; k++)
        OK(MPI_Waitany(AT_ONCE, requests, &done, MPI_STATUS_IGNORE));
    lt_count_check();
    for (int k = 0; k < AT_ONCE; k++) {
        for (int i = 0; i < N; i++) {
            unsigned long long a = 1, b = 0;
            for (int r = 0; r < lt_size; r++) {
                unsigned factor = (unsigned)(2 * i + r + 1);
                b = b * factor + (unsigned)(i * r);
                a *= factor;
            }
            if ((*got)[k][i][0] != a || (*got)[k][i][1] != b) {
                lt_fail(__FILE__, __LINE__, "operation %d, element %d: expected (%llu, %llu), got (%llu, %llu)", k, i,
                        a, b, (*got)[k][i][0], (*got)[k][i][1]);
                i = N;
            }
        }
    }
    OK(MPI_Type_free(&function));
    OK(MPI_Op_free(&op));
    free(mine);
    free(got);
}

/* Scans of integers, in place: whatever the order of the sums, they are the same. */
static void prefixes(void)
{
    enum { N = 100003 };
    long long *values = lt_alloc(sizeof *values * N);
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        MPI_Request request;
        for (int i = 0; i < N; i++)
            values[i] = (long long)(lt_rank + 1) * i;
        OK((exclusive ? MPI_Iexscan : MPI_Iscan)(MPI_IN_PLACE, values, N, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD,
                                                 &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        long long ranks = lt_rank + 1 - exclusive, sum = exclusive && lt_rank == 0 ? 1 : ranks * (ranks + 1) / 2;
        lt_count_check();
        for (int i = 0; i < N; i++) {
            if (values[i] != sum * i) {
                lt_fail(__FILE__, __LINE__, "element %d: expected %lld, got %lld", i, sum * i, values[i]);
                break;
            }
        }
    }
    free(values);
}

/* Ranks that disagree about the length: a rank that is told sees it in the status before it completes the request, and
 * the communicator works on. */
static void disagreement(void)
{
    if (lt_size == 1)
        return;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* By messages, a short and a long operand go by different algorithms, which do not notice. */
    int by_messages = getenv("LIMOSA_CMA") || getenv("LIMOSA_DEVICE") || getenv("LIMOSA_HOSTS");
    const int lengths[] = {20000, 100000, 100008, by_messages ? 50000 : 100};
    double *mine = operands(100008), *got = operands(100008);
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < 4; b++) {
            MPI_Request request;
            MPI_Status status;
            int flag = 0, code, class, worst, n = lengths[lt_rank == 1 ? b : a];
            OK(MPI_Iallreduce(mine, got, n, MPI_DOUBLE, MPI_SUM, comm, &request));
            status.MPI_ERROR = MPI_SUCCESS;
            while (!flag && OK(MPI_Request_get_status(request, &flag, &status))) {
            }
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_INT(lt_class(status.MPI_ERROR), lt_class(code));
            class = lt_class(code);
            OK(MPI_Allreduce(&class, &worst, 1, MPI_INT, MPI_MAX, comm));
            if (a == b)
                CHECK_INT(worst, MPI_SUCCESS);
            else
                CHECK(worst == MPI_ERR_TRUNCATE || worst == MPI_ERR_COUNT);
        }
    }
    free(mine);
    free(got);
    OK(MPI_Comm_free(&comm));
}

/* Operations that have ended do not keep their temporary memory. */
static void memory_is_given_back(void)
{
    enum { N = 512 << 10, OPERATIONS = 32, MOST_MB = 64 };
    double *mine = operands(N), *got = operands(N);
    struct rusage before, after;
    for (int k = 0; k < OPERATIONS; k++) {
        MPI_Request request;
        OK(MPI_Iscan(mine, got, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (k == 1)
            getrusage(RUSAGE_SELF, &before);
    }
    getrusage(RUSAGE_SELF, &after);
    /* The address sanitizer keeps what is freed. */
#ifndef __SANITIZE_ADDRESS__
    CHECK((after.ru_maxrss - before.ru_maxrss) / 1024 < MOST_MB);
#endif
    free(mine);
    free(got);
}

LT_MAIN("coll_background_large", TEST(apart), TEST(in_place), TEST(with_gaps), TEST(by_the_program), TEST(prefixes),
        TEST(disagreement), TEST(memory_is_given_back))
