/* Accumulation against MPI_Reduce_local: every predefined operation and type, derived types, atomicity (MPI-5 sections
 * 12.3.4 to 12.3.6). */
#include "limosa_test.h"
#include <complex.h>

enum { CREATE, CREATE_ALLOCATED, ALLOCATE, FLAVORS };

typedef struct {
    MPI_Win win;
    char *base;
    int flavor;
} window;

static void make(window *w, int flavor, MPI_Aint bytes)
{
    w->flavor = flavor;
    if (flavor == CREATE) {
        w->base = lt_alloc((size_t)bytes);
        OK(MPI_Win_create(w->base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
    } else if (flavor == CREATE_ALLOCATED) {
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &w->base));
        OK(MPI_Win_create(w->base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
    } else {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->base, &w->win));
    }
    OK(MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN));
    memset(w->base, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void unmake(window *w)
{
    OK(MPI_Win_free(&w->win));
    if (w->flavor == CREATE)
        free(w->base);
    if (w->flavor == CREATE_ALLOCATED)
        OK(MPI_Free_mem(w->base));
}

static const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_BAND,   MPI_BOR,     MPI_BXOR,
                             MPI_LAND, MPI_LOR,  MPI_LXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
#define OPS (sizeof ops / sizeof *ops)

static size_t all_types(MPI_Datatype *types)
{
    const MPI_Datatype all[] = {MPI_CHAR,
                                MPI_SIGNED_CHAR,
                                MPI_UNSIGNED_CHAR,
                                MPI_BYTE,
                                MPI_SHORT,
                                MPI_UNSIGNED_SHORT,
                                MPI_INT,
                                MPI_UNSIGNED,
                                MPI_LONG,
                                MPI_UNSIGNED_LONG,
                                MPI_LONG_LONG,
                                MPI_INT8_T,
                                MPI_UINT16_T,
                                MPI_INT32_T,
                                MPI_UINT64_T,
                                MPI_AINT,
                                MPI_COUNT,
                                MPI_OFFSET,
                                MPI_C_BOOL,
                                MPI_FLOAT,
                                MPI_DOUBLE,
                                MPI_LONG_DOUBLE,
                                MPI_C_FLOAT_COMPLEX,
                                MPI_C_DOUBLE_COMPLEX,
                                MPI_C_LONG_DOUBLE_COMPLEX,
                                MPI_FLOAT_INT,
                                MPI_DOUBLE_INT,
                                MPI_LONG_INT,
                                MPI_2INT,
                                MPI_SHORT_INT,
                                MPI_LONG_DOUBLE_INT,
                                MPI_INTEGER,
                                MPI_REAL,
                                MPI_DOUBLE_PRECISION};
    memcpy(types, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* Small whole numbers in every type: sums and products of them are exact. */
static void fill(char *memory, MPI_Datatype type, int n, int seed)
{
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    memset(memory, 0, (size_t)(n * extent));
    for (int i = 0; i < n; i++) {
        char *at = memory + i * extent;
        int v = (i * 7 + seed * 3) % 5;
        if (type == MPI_FLOAT || type == MPI_REAL) {
            *(float *)at = (float)v;
        } else if (type == MPI_DOUBLE || type == MPI_DOUBLE_PRECISION) {
            *(double *)at = v;
        } else if (type == MPI_LONG_DOUBLE) {
            *(long double *)at = v;
        } else if (type == MPI_C_FLOAT_COMPLEX) {
            *(float complex *)at = (float)v + (float)(v + 1) * I;
        } else if (type == MPI_C_DOUBLE_COMPLEX) {
            *(double complex *)at = v + (v + 1) * I;
        } else if (type == MPI_C_LONG_DOUBLE_COMPLEX) {
            *(long double complex *)at = v + (v + 1) * I;
        } else if (type == MPI_FLOAT_INT) {
            *(float *)at = (float)v;
            ((int *)at)[1] = i + seed;
        } else if (type == MPI_DOUBLE_INT) {
            *(double *)at = v;
            ((int *)at)[2] = i + seed;
        } else if (type == MPI_LONG_DOUBLE_INT) {
            *(long double *)at = v;
            ((int *)at)[4] = i + seed;
        } else if (type == MPI_C_BOOL) {
            *(_Bool *)at = v % 2;
        } else {
            at[0] = (char)v; /* a little-endian integer, or the value of a pair of integers */
        }
    }
}

/* A long double has six bytes that mean nothing. */
static void clear_gaps(char *memory, MPI_Datatype type, size_t n)
{
    if (type != MPI_LONG_DOUBLE && type != MPI_C_LONG_DOUBLE_COMPLEX && type != MPI_LONG_DOUBLE_INT)
        return;
    size_t step = type == MPI_LONG_DOUBLE_INT ? 32 : 16;
    for (size_t at = 0; at + 16 <= n; at += step)
        memset(memory + at + 10, 0, 6);
}

static int is_defined(MPI_Op op, MPI_Datatype type, const char *a, char *b)
{
    if (op == MPI_REPLACE || op == MPI_NO_OP)
        return 1;
    return MPI_Reduce_local(a, b, 0, type, op) == MPI_SUCCESS;
}

/* Every rank in turn accumulates to the next rank. */
static void every_operation_on_every_type(void)
{
    enum { N = 37 };
    MPI_Datatype types[64];
    size_t n_types = all_types(types);
    char *own = lt_alloc(N * 32), *expected = lt_alloc(N * 32), *old = lt_alloc(N * 32), *before = lt_alloc(N * 32);
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        make(&w, flavor, N * 32);
        for (size_t t = 0; t < n_types; t++) {
            MPI_Aint lb, extent;
            OK(MPI_Type_get_extent(types[t], &lb, &extent));
            for (size_t o = 0; o < OPS; o++) {
                fill(own, types[t], N, lt_rank + 1);
                fill(before, types[t], N, from + 7);
                fill(expected, types[t], N, from + 1);
                if (!is_defined(ops[o], types[t], own, expected)) {
                    OK(MPI_Win_fence(0, w.win));
                    FAILS(MPI_ERR_OP, MPI_Accumulate(own, N, types[t], to, 0, N, types[t], ops[o], w.win));
                    OK(MPI_Win_fence(0, w.win));
                    continue;
                }
                memcpy(w.base, before, (size_t)(N * extent));
                memset(old, 0, N * 32);
                OK(MPI_Win_fence(0, w.win));
                if (ops[o] == MPI_NO_OP)
                    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, old, N, types[t], to, 0, N, types[t], ops[o], w.win));
                else if (o % 2)
                    OK(MPI_Accumulate(own, N, types[t], to, 0, N, types[t], ops[o], w.win));
                else
                    OK(MPI_Get_accumulate(own, N, types[t], old, N, types[t], to, 0, N, types[t], ops[o], w.win));
                OK(MPI_Win_fence(0, w.win));
                if (ops[o] == MPI_REPLACE) {
                    CHECK_BYTES(w.base, expected, (size_t)(N * extent));
                } else {
                    char *sum = lt_alloc((size_t)(N * extent));
                    memcpy(sum, before, (size_t)(N * extent));
                    if (ops[o] != MPI_NO_OP)
                        OK(MPI_Reduce_local(expected, sum, N, types[t], ops[o]));
                    clear_gaps(sum, types[t], (size_t)(N * extent));
                    clear_gaps(w.base, types[t], (size_t)(N * extent));
                    CHECK_BYTES(w.base, sum, (size_t)(N * extent));
                    free(sum);
                }
                if (ops[o] == MPI_NO_OP || o % 2 == 0) {
                    fill(before, types[t], N, lt_rank + 7);
                    CHECK_BYTES(old, before, (size_t)(N * extent));
                }
            }
        }
        unmake(&w);
    }
    free(own);
    free(expected);
    free(old);
    free(before);
}

static void derived_types_are_accumulated_element_by_element(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        enum { N = 3000 };
        window w;
        make(&w, flavor, 3 * N * sizeof(double));
        MPI_Datatype spread;
        OK(MPI_Type_vector(N, 1, 3, MPI_DOUBLE, &spread));
        OK(MPI_Type_commit(&spread));
        double *own = lt_alloc(N * sizeof(double)), *old = lt_alloc(3 * N * sizeof(double));
        for (int i = 0; i < N; i++)
            own[i] = i + 1;
        OK(MPI_Win_lock_all(0, w.win));
        OK(MPI_Accumulate(own, N, MPI_DOUBLE, 0, 0, 1, spread, MPI_SUM, w.win));
        OK(MPI_Win_unlock_all(w.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock_all(0, w.win));
        memset(old, -1, 3 * N * sizeof(double));
        OK(MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, old, 1, spread, 0, 0, 1, spread, MPI_NO_OP, w.win));
        OK(MPI_Win_flush(0, w.win));
        int wrong = 0;
        for (int i = 0; i < N; i++)
            wrong += old[3 * i] != (double)lt_size * (i + 1);
        CHECK_INT(wrong, 0);
        OK(MPI_Win_unlock_all(w.win));
        if (lt_rank == 0)
            CHECK(((double *)w.base)[1] == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Type_free(&spread));
        free(own);
        free(old);
        unmake(&w);
    }
}

/* Elements that processors change at once, and such that need a lock: aligned or not. */
static void counters_lose_nothing(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        const int turns = 200;
        window w;
        make(&w, flavor, 256);
        OK(MPI_Win_lock_all(0, w.win));
        char *seen = lt_alloc((size_t)(turns * lt_size));
        memset(seen, 0, (size_t)(turns * lt_size));
        for (int i = 0; i < turns; i++) {
            const int one = 1;
            int was = -1;
            const double complex z = 1 + 2 * I;
            const long l = 3;
            OK(MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 0, MPI_SUM, w.win));
            OK(MPI_Accumulate(&z, 1, MPI_C_DOUBLE_COMPLEX, 0, 16, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, w.win));
            OK(MPI_Accumulate(&l, 1, MPI_LONG, 0, 65, 1, MPI_LONG, MPI_SUM, w.win));
            OK(MPI_Win_flush(0, w.win));
            if (was >= 0 && was < turns * lt_size)
                seen[was]++;
            else
                CHECK_INT(was, -2);
        }
        char *all = lt_alloc((size_t)(turns * lt_size));
        OK(MPI_Allreduce(seen, all, turns * lt_size, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
        for (int i = 0; i < turns * lt_size; i++)
            CHECK_INT(all[i], 1);
        OK(MPI_Win_unlock_all(w.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (lt_rank == 0) {
            double complex z;
            long l;
            memcpy(&z, w.base + 16, sizeof z);
            memcpy(&l, w.base + 65, sizeof l);
            CHECK(creal(z) == turns * lt_size && cimag(z) == 2 * turns * lt_size);
            CHECK_INT(l, 3 * turns * lt_size);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        free(seen);
        free(all);
        unmake(&w);
    }
}

/* Long accumulations and single ones of the same elements, all at once. */
static void long_and_single_accumulations_lose_nothing(void)
{
    enum { ELEMENTS = 3000, TURNS = 60 };
    static long ones[ELEMENTS], found[ELEMENTS];
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        long singles = 0, total = 0;
        window w;
        make(&w, flavor, sizeof ones);
        for (int i = 0; i < ELEMENTS; i++)
            ones[i] = 1;
        OK(MPI_Win_lock_all(0, w.win));
        for (int i = 0; i < TURNS; i++) {
            OK(MPI_Accumulate(ones, ELEMENTS, MPI_LONG, 0, 0, ELEMENTS, MPI_LONG, MPI_SUM, w.win));
            for (int k = 0; k < 50; k++, singles++) {
                const long one = 1;
                long was, expected = -1;
                MPI_Aint at = (MPI_Aint)((i * 50 + k * 7) % ELEMENTS) * (MPI_Aint)sizeof(long);
                OK(MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, at, MPI_SUM, w.win));
                OK(MPI_Compare_and_swap(&one, &expected, &found[0], MPI_LONG, 0, at, w.win));
            }
            OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, found, ELEMENTS, MPI_LONG, 0, 0, ELEMENTS, MPI_LONG, MPI_NO_OP,
                                  w.win));
            OK(MPI_Win_flush(0, w.win));
            CHECK(found[ELEMENTS - 1] > i && found[0] > i);
        }
        OK(MPI_Win_unlock_all(w.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (lt_rank == 0) {
            for (int i = 0; i < ELEMENTS; i++) {
                CHECK(((long *)w.base)[i] >= TURNS * lt_size);
                total += ((long *)w.base)[i];
            }
            CHECK_INT(total, lt_size * (TURNS * ELEMENTS + singles));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        unmake(&w);
    }
}

/* The standard wants this of single elements only; programs read and replace whole records, and other libraries let
 * no rank see half of one. */
static void nobody_sees_half_of_a_record(void)
{
    enum { TIMES = 3000 };
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        window w;
        make(&w, flavor, 64);
        long halves = 0;
        OK(MPI_Win_lock_all(0, w.win));
        for (uint64_t i = 0; i < TIMES; i++) {
            uint64_t mine[2] = {i * (uint64_t)(2 * lt_rank + 3) * 0x0101010101010101u, 0}, seen[2] = {1, 1};
            mine[1] = mine[0];
            OK(MPI_Accumulate(mine, 16, MPI_BYTE, 0, 8, 16, MPI_BYTE, MPI_REPLACE, w.win));
            OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, seen, 16, MPI_BYTE, 0, 8, 16, MPI_BYTE, MPI_NO_OP,
                                  w.win));
            OK(MPI_Win_flush(0, w.win));
            halves += seen[0] != seen[1];
        }
        OK(MPI_Win_unlock_all(w.win));
        CHECK_INT(halves, 0);
        unmake(&w);
    }
}

static void compare_and_swap_makes_a_lock(void)
{
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        const int turns = 20;
        window w;
        make(&w, flavor, 2 * sizeof(long));
        OK(MPI_Win_lock_all(0, w.win));
        for (int i = 0; i < turns; i++) {
            const long none = 0, me = lt_rank + 1;
            long was = -1, count;
            while (was != none) {
                OK(MPI_Compare_and_swap(&me, &none, &was, MPI_LONG, 0, 0, w.win));
                OK(MPI_Win_flush(0, w.win));
            }
            OK(MPI_Get(&count, 1, MPI_LONG, 0, sizeof(long), 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(0, w.win));
            count++;
            OK(MPI_Put(&count, 1, MPI_LONG, 0, sizeof(long), 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(0, w.win));
            OK(MPI_Fetch_and_op(&none, &was, MPI_LONG, 0, 0, MPI_REPLACE, w.win));
            OK(MPI_Win_flush(0, w.win));
            CHECK_INT(was, me);
        }
        OK(MPI_Win_unlock_all(w.win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (lt_rank == 0)
            CHECK_INT(((long *)w.base)[1], turns * lt_size);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        unmake(&w);
    }
}

LT_MAIN("rma_accumulate", TEST(every_operation_on_every_type), TEST(derived_types_are_accumulated_element_by_element),
        TEST(counters_lose_nothing), TEST(long_and_single_accumulations_lose_nothing),
        TEST(nobody_sees_half_of_a_record), TEST(compare_and_swap_makes_a_lock))
