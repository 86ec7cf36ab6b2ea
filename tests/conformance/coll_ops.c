/* Every predefined operation on every type that it is defined for, against a scalar loop: MPI-5 sections 6.9.2
 * and 6.9.4.
 *
 * The values are small enough that no result overflows, and exact in floating point, so the order of evaluation does
 * not matter.
 */
#include "limosa_test.h"

#include <complex.h>
#include <limits.h>
#include <stdbool.h>

enum { MOST = 133 };

typedef enum { SUM, PROD, MAX, MIN, LAND, LOR, LXOR, BAND, BOR, BXOR, OPS } op_index;
static const char *const op_names[OPS] = {"MPI_SUM", "MPI_PROD", "MPI_MAX",  "MPI_MIN", "MPI_LAND",
                                          "MPI_LOR", "MPI_LXOR", "MPI_BAND", "MPI_BOR", "MPI_BXOR"};

static MPI_Op op_of(op_index op)
{
    static const MPI_Op ops[OPS] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_LAND,
                                    MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    return ops[op];
}

/* Pseudo-random bits for element i of a rank. */
static uint64_t bits(int r, int i)
{
    uint64_t x = (uint64_t)r * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xbf58476d1ce4e5b9u + 12345;
    x ^= x >> 29;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 32;
}

/* A small whole number fit for the operation: products stay below 127 for up to 8 ranks, sums too. */
static int small(op_index op, int is_signed, int r, int i)
{
    int x = (int)(bits(r, i) % 13);
    if (op == PROD)
        return r < 6 ? 1 + x % 2 : is_signed && x % 2 ? -1 : 1;
    if (op == LAND || op == LOR || op == LXOR)
        return x < 5 ? 0 : x % 3 + 1;
    return is_signed ? x - 6 : x;
}

/* For each C type: the fill and the scalar combination. BITS operations see all bits of the element. */
#define INTEGER(name, ctype, is_signed)                                                                                \
    static void fill_##name(op_index op, void *b, int r, int n)                                                        \
    {                                                                                                                  \
        for (int i = 0; i < n; i++)                                                                                    \
            ((ctype *)b)[i] = op >= BAND ? (ctype)bits(r, i) : (ctype)small(op, is_signed, r, i);                      \
    }                                                                                                                  \
    static void combine_##name(op_index op, const void *a, void *b, int n)                                             \
    {                                                                                                                  \
        for (int i = 0; i < n; i++) {                                                                                  \
            ctype x = ((const ctype *)a)[i], *y = (ctype *)b + i;                                                      \
            switch (op) {                                                                                              \
            case SUM: *y = (ctype)(x + *y); break;                                                                     \
            case PROD: *y = (ctype)(x * *y); break;                                                                    \
            case MAX: *y = x > *y ? x : *y; break;                                                                     \
            case MIN: *y = x < *y ? x : *y; break;                                                                     \
            case LAND: *y = x && *y; break;                                                                            \
            case LOR: *y = x || *y; break;                                                                             \
            case LXOR: *y = !x != !*y; break;                                                                          \
            case BAND: *y = (ctype)(x & *y); break;                                                                    \
            case BOR: *y = (ctype)(x | *y); break;                                                                     \
            default: *y = (ctype)(x ^ *y); break;                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define REAL(name, ctype)                                                                                              \
    static void fill_##name(op_index op, void *b, int r, int n)                                                        \
    {                                                                                                                  \
        memset(b, 0, sizeof(ctype) * (size_t)n);                                                                       \
        for (int i = 0; i < n; i++)                                                                                    \
            ((ctype *)b)[i] = (ctype)small(op, 1, r, i) / 2;                                                           \
    }                                                                                                                  \
    static void combine_##name(op_index op, const void *a, void *b, int n)                                             \
    {                                                                                                                  \
        for (int i = 0; i < n; i++) {                                                                                  \
            ctype x = ((const ctype *)a)[i], *y = (ctype *)b + i;                                                      \
            *y = op == SUM ? x + *y : op == PROD ? x * *y : (op == MAX) == (x > *y) ? x : *y;                          \
        }                                                                                                              \
    }

#define COMPLEX(name, ctype)                                                                                           \
    static void fill_##name(op_index op, void *b, int r, int n)                                                        \
    {                                                                                                                  \
        memset(b, 0, sizeof(ctype) * (size_t)n);                                                                       \
        for (int i = 0; i < n; i++)                                                                                    \
            ((ctype *)b)[i] = (ctype)(small(op, 1, r, i) + small(op, 1, r, i + 1000) * I);                             \
    }                                                                                                                  \
    static void combine_##name(op_index op, const void *a, void *b, int n)                                             \
    {                                                                                                                  \
        for (int i = 0; i < n; i++) {                                                                                  \
            ctype x = ((const ctype *)a)[i], *y = (ctype *)b + i;                                                      \
            *y = op == SUM ? x + *y : x * *y;                                                                          \
        }                                                                                                              \
    }

INTEGER(i8, int8_t, 1)
INTEGER(i16, int16_t, 1)
INTEGER(i32, int32_t, 1)
INTEGER(i64, int64_t, 1)
INTEGER(u8, uint8_t, 0)
INTEGER(u16, uint16_t, 0)
INTEGER(u32, uint32_t, 0)
INTEGER(u64, uint64_t, 0)
REAL(f32, float)
REAL(f64, double)
REAL(f80, long double)
COMPLEX(c32, float complex)
COMPLEX(c64, double complex)
COMPLEX(c80, long double complex)

/* Logical values are 0 and 1, of 1, 2, 4 or 8 bytes. */
#define LOGICAL(name, ctype, like)                                                                                     \
    static void fill_##name(op_index op, void *b, int r, int n)                                                        \
    {                                                                                                                  \
        for (int i = 0; i < n; i++)                                                                                    \
            ((ctype *)b)[i] = small(op, 0, r, i) != 0;                                                                 \
    }                                                                                                                  \
    static void combine_##name(op_index op, const void *a, void *b, int n)                                             \
    {                                                                                                                  \
        combine_##like(op, a, b, n);                                                                                   \
    }
LOGICAL(l8, int8_t, i8)
LOGICAL(l16, int16_t, i16)
LOGICAL(l32, int32_t, i32)
LOGICAL(l64, int64_t, i64)

/* The categories of section 6.9.2 and what is defined on them. */
#define ARITHMETIC (1u << SUM | 1u << PROD)
#define ORDER (1u << MAX | 1u << MIN)
#define LOGIC (1u << LAND | 1u << LOR | 1u << LXOR)
#define BITWISE (1u << BAND | 1u << BOR | 1u << BXOR)
#define C_INTEGER (ARITHMETIC | ORDER | LOGIC | BITWISE)
#define F_INTEGER (ARITHMETIC | ORDER | BITWISE)
#define FLOATING (ARITHMETIC | ORDER)

typedef struct {
    MPI_Datatype type;
    const char *name;
    size_t bytes, padded;
    unsigned ops;
    void (*fill)(op_index, void *, int, int);
    void (*combine)(op_index, const void *, void *, int);
} kind;

/* `used`: the bytes of an element that carry its value (an 80-bit number has padding). */
#define KIND(type, ctype, used, ops, name) {type, #type, sizeof(ctype), used, ops, fill_##name, combine_##name}
#define FULL(type, ctype, ops, name) KIND(type, ctype, sizeof(ctype), ops, name)

static const kind kinds[] = {
    FULL(MPI_INT, int, C_INTEGER, i32),
    FULL(MPI_LONG, long, C_INTEGER, i64),
    FULL(MPI_SHORT, short, C_INTEGER, i16),
    FULL(MPI_UNSIGNED_SHORT, short, C_INTEGER, u16),
    FULL(MPI_UNSIGNED, int, C_INTEGER, u32),
    FULL(MPI_UNSIGNED_LONG, long, C_INTEGER, u64),
    FULL(MPI_LONG_LONG, long long, C_INTEGER, i64),
    FULL(MPI_UNSIGNED_LONG_LONG, long long, C_INTEGER, u64),
    FULL(MPI_SIGNED_CHAR, char, C_INTEGER, i8),
#if CHAR_MIN < 0
    FULL(MPI_CHAR, char, C_INTEGER, i8),
#else
    FULL(MPI_CHAR, char, C_INTEGER, u8),
#endif
    FULL(MPI_UNSIGNED_CHAR, char, C_INTEGER, u8),
    FULL(MPI_INT8_T, int8_t, C_INTEGER, i8),
    FULL(MPI_INT16_T, int16_t, C_INTEGER, i16),
    FULL(MPI_INT32_T, int32_t, C_INTEGER, i32),
    FULL(MPI_INT64_T, int64_t, C_INTEGER, i64),
    FULL(MPI_UINT8_T, uint8_t, C_INTEGER, u8),
    FULL(MPI_UINT16_T, uint16_t, C_INTEGER, u16),
    FULL(MPI_UINT32_T, uint32_t, C_INTEGER, u32),
    FULL(MPI_UINT64_T, uint64_t, C_INTEGER, u64),
    FULL(MPI_AINT, MPI_Aint, F_INTEGER, i64),
    FULL(MPI_OFFSET, MPI_Offset, F_INTEGER, i64),
    FULL(MPI_COUNT, MPI_Count, F_INTEGER, i64),
    FULL(MPI_INTEGER, int, F_INTEGER, i32),
    FULL(MPI_INTEGER1, int8_t, F_INTEGER, i8),
    FULL(MPI_INTEGER2, int16_t, F_INTEGER, i16),
    FULL(MPI_INTEGER4, int32_t, F_INTEGER, i32),
    FULL(MPI_INTEGER8, int64_t, F_INTEGER, i64),
    FULL(MPI_FLOAT, float, FLOATING, f32),
    FULL(MPI_DOUBLE, double, FLOATING, f64),
    KIND(MPI_LONG_DOUBLE, long double, 10, FLOATING, f80),
    FULL(MPI_REAL, float, FLOATING, f32),
    FULL(MPI_DOUBLE_PRECISION, double, FLOATING, f64),
    FULL(MPI_REAL4, float, FLOATING, f32),
    FULL(MPI_REAL8, double, FLOATING, f64),
    FULL(MPI_C_BOOL, bool, LOGIC, l8),
    FULL(MPI_CXX_BOOL, bool, LOGIC, l8),
    FULL(MPI_LOGICAL, int, LOGIC, l32),
    FULL(MPI_LOGICAL1, int8_t, LOGIC, l8),
    FULL(MPI_LOGICAL2, int16_t, LOGIC, l16),
    FULL(MPI_LOGICAL4, int32_t, LOGIC, l32),
    FULL(MPI_LOGICAL8, int64_t, LOGIC, l64),
    FULL(MPI_C_COMPLEX, float complex, ARITHMETIC, c32),
    FULL(MPI_C_FLOAT_COMPLEX, float complex, ARITHMETIC, c32),
    FULL(MPI_C_DOUBLE_COMPLEX, double complex, ARITHMETIC, c64),
    KIND(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, 26, ARITHMETIC, c80),
    FULL(MPI_COMPLEX, float complex, ARITHMETIC, c32),
    FULL(MPI_DOUBLE_COMPLEX, double complex, ARITHMETIC, c64),
    FULL(MPI_COMPLEX8, float complex, ARITHMETIC, c32),
    FULL(MPI_COMPLEX16, double complex, ARITHMETIC, c64),
    FULL(MPI_CXX_FLOAT_COMPLEX, float complex, ARITHMETIC, c32),
    FULL(MPI_CXX_DOUBLE_COMPLEX, double complex, ARITHMETIC, c64),
    FULL(MPI_BYTE, uint8_t, BITWISE, u8),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Whether byte b is the sign of a part that is zero in both: which zero a product of complex numbers gives depends on
 * the order of the factors. */
static int sign_of_zero(const unsigned char *g, const unsigned char *e, size_t b, size_t part)
{
    size_t first = b / part * part, end = part == 16 ? 10 : part;
    if ((g[b] ^ e[b]) != 0x80 || b != first + end - 1)
        return 0;
    for (size_t i = first; i < b; i++) {
        if (g[i] != 0 || e[i] != 0)
            return 0;
    }
    return (g[b] & 0x7f) == 0;
}

/* Compares values, not the padding of 80-bit numbers. */
static int equal(const kind *k, const char *what, op_index op, const void *got, const void *expected, int n)
{
    lt_count_check();
    for (int i = 0; i < n; i++) {
        const unsigned char *g = (const unsigned char *)got + (size_t)i * k->bytes,
                            *e = (const unsigned char *)expected + (size_t)i * k->bytes;
        for (size_t b = 0; b < k->padded; b++) {
            if (g[b] != e[b] && !(k->padded == 26 && b >= 10 && b < 16) &&
                !((k->fill == fill_c32 || k->fill == fill_c64 || k->fill == fill_c80) &&
                  sign_of_zero(g, e, b, k->bytes / 2))) {
                lt_fail(__FILE__, __LINE__, "%s of %s with %s: element %d of %d, byte %zu: expected 0x%02x, got 0x%02x",
                        what, op_names[op], k->name, i, n, b, e[b], g[b]);
                return 0;
            }
        }
    }
    return 1;
}

/* MPI_Reduce_local at every count up to MOST and several alignments: the vector kernels and their remainders. */
static void local(void)
{
    static _Alignas(64) unsigned char a[MOST * 32 + 64], b[MOST * 32 + 64], expected[MOST * 32 + 64];
    for (int t = 0; t < KINDS; t++) {
        for (op_index op = 0; op < OPS; op++) {
            if (!(kinds[t].ops >> op & 1))
                continue;
            for (int n = 0; n <= MOST; n += n < 40 ? 1 : 31) {
                size_t shift = (size_t)(n % 3) * kinds[t].bytes, bytes = (size_t)n * kinds[t].bytes;
                memset(b, 0x77, sizeof b);
                kinds[t].fill(op, a + shift, 1, n);
                kinds[t].fill(op, b, 2, n);
                memcpy(expected, b, sizeof b);
                kinds[t].combine(op, a + shift, expected, n);
                OK(n % 2 ? MPI_Reduce_local(a + shift, b, n, kinds[t].type, op_of(op))
                         : MPI_Reduce_local_c(a + shift, b, n, kinds[t].type, op_of(op)));
                if (!equal(&kinds[t], "MPI_Reduce_local", op, b, expected, n))
                    break;
                CHECK_BYTES(b + bytes, expected + bytes, 32);
            }
        }
    }
}

static void between_ranks(void)
{
    static const int some[] = {1, 5, MOST};
    static _Alignas(64) unsigned char mine[MOST * 32], got[MOST * 32], expected[MOST * 32], theirs[MOST * 32],
        partial[MOST * 32];
    for (int t = 0; t < KINDS; t++) {
        for (op_index op = 0; op < OPS; op++) {
            if (!(kinds[t].ops >> op & 1))
                continue;
            for (int c = 0; c < 3; c++) {
                int n = some[c], root = (t + (int)op) % lt_size;
                kinds[t].fill(op, mine, lt_rank, n);
                kinds[t].fill(op, expected, 0, n);
                if (lt_rank == 0)
                    memcpy(partial, expected, sizeof partial);
                for (int r = 1; r < lt_size; r++) {
                    kinds[t].fill(op, theirs, r, n);
                    kinds[t].combine(op, theirs, expected, n);
                    if (r == lt_rank)
                        memcpy(partial, expected, sizeof partial);
                }
                if (lt_size == 1 && (op == LAND || op == LOR || op == LXOR)) {
                    /* A reduction over one rank copies: the value is as it was given. */
                    memcpy(expected, mine, sizeof mine);
                    memcpy(partial, mine, sizeof mine);
                }
                memset(got, 0, sizeof got);
                OK(MPI_Allreduce(mine, got, n, kinds[t].type, op_of(op), MPI_COMM_WORLD));
                if (!equal(&kinds[t], "MPI_Allreduce", op, got, expected, n))
                    break;
                OK(MPI_Reduce(mine, got, n, kinds[t].type, op_of(op), root, MPI_COMM_WORLD));
                if (lt_rank == root)
                    equal(&kinds[t], "MPI_Reduce", op, got, expected, n);
                OK(MPI_Scan(mine, got, n, kinds[t].type, op_of(op), MPI_COMM_WORLD));
                if (lt_rank > 0)
                    equal(&kinds[t], "MPI_Scan", op, got, partial, n);
            }
        }
    }
}

/* MPI_MINLOC and MPI_MAXLOC: the extreme value with its index; of equal values the lowest index. */
#define LOCATION(name, mpi_type, ctype)                                                                                \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        typedef struct {                                                                                               \
            ctype v;                                                                                                   \
            int i;                                                                                                     \
        } pair;                                                                                                        \
        pair mine[MOST], got[MOST];                                                                                    \
        for (int way = 0; way < 4; way++) {                                                                            \
            memset(mine, 0, sizeof mine);                                                                              \
            memset(got, 0, sizeof got);                                                                                \
            for (int i = 0; i < MOST; i++)                                                                             \
                mine[i].v = (ctype)((int)(bits(lt_rank, i) % 4) - 1), mine[i].i = 10 * (lt_size - lt_rank) + i;        \
            MPI_Op op = way & 1 ? MPI_MAXLOC : MPI_MINLOC;                                                             \
            if (way & 2)                                                                                               \
                OK(MPI_Scan(mine, got, MOST, mpi_type, op, MPI_COMM_WORLD));                                           \
            else                                                                                                       \
                OK(MPI_Allreduce(mine, got, MOST, mpi_type, op, MPI_COMM_WORLD));                                      \
            for (int i = 0; i < MOST; i++) {                                                                           \
                pair best = {0, 0};                                                                                    \
                for (int r = 0; r <= (way & 2 ? lt_rank : lt_size - 1); r++) {                                         \
                    pair p = {(ctype)((int)(bits(r, i) % 4) - 1), 10 * (lt_size - r) + i};                             \
                    if (r == 0 || (way & 1 ? p.v > best.v : p.v < best.v) || (p.v == best.v && p.i < best.i))          \
                        best = p;                                                                                      \
                }                                                                                                      \
                CHECK(got[i].v == best.v);                                                                             \
                CHECK_INT(got[i].i, best.i);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }
LOCATION(location_float, MPI_FLOAT_INT, float)
LOCATION(location_double, MPI_DOUBLE_INT, double)
LOCATION(location_long, MPI_LONG_INT, long)
LOCATION(location_2int, MPI_2INT, int)
LOCATION(location_short, MPI_SHORT_INT, short)
LOCATION(location_long_double, MPI_LONG_DOUBLE_INT, long double)

/* Pairs of two equal Fortran types carry the index in the type of the value. */
#define LOCATION2(name, mpi_type, ctype)                                                                               \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        ctype mine[2] = {(ctype)((lt_rank * 3) % 5), (ctype)lt_rank}, got[2] = {0, 0}, best[2] = {-1, -1};             \
        OK(MPI_Allreduce(mine, got, 1, mpi_type, MPI_MAXLOC, MPI_COMM_WORLD));                                         \
        for (int r = 0; r < lt_size; r++) {                                                                            \
            if ((ctype)((r * 3) % 5) > best[0])                                                                        \
                best[0] = (ctype)((r * 3) % 5), best[1] = (ctype)r;                                                    \
        }                                                                                                              \
        CHECK(got[0] == best[0] && got[1] == best[1]);                                                                 \
    }
LOCATION2(location_2integer, MPI_2INTEGER, int)
LOCATION2(location_2real, MPI_2REAL, float)
LOCATION2(location_2double, MPI_2DOUBLE_PRECISION, double)

static void commutative(void)
{
    for (op_index op = 0; op < OPS; op++) {
        int flag = 0;
        OK(MPI_Op_commutative(op_of(op), &flag));
        CHECK_INT(flag, 1);
    }
}

LT_MAIN("coll_ops", TEST(local), TEST(between_ranks), TEST(location_float), TEST(location_double), TEST(location_long),
        TEST(location_2int), TEST(location_short), TEST(location_long_double), TEST(location_2integer),
        TEST(location_2real), TEST(location_2double), TEST(commutative))
