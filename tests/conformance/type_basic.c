/* Named datatypes: size, extent, name, pair types, and transfer of each: MPI-5 sections 3.2.2, 5.1, 19.1.5 and the
 * ABI's type table. */
#include "limosa_test.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

struct named {
    MPI_Datatype type;
    const char *name;
    size_t size, extent;
};

#define SAME(type, ctype) {type, #type, sizeof(ctype), sizeof(ctype)}
#define PAIR(type, ctype, first) {type, #type, sizeof(first) + sizeof(int), sizeof(ctype)}

struct float_int {
    float v;
    int i;
};
struct double_int {
    double v;
    int i;
};
struct long_int {
    long v;
    int i;
};
struct short_int {
    short v;
    int i;
};
struct long_double_int {
    long double v;
    int i;
};

static const struct named named[] = {
    SAME(MPI_AINT, MPI_Aint),
    SAME(MPI_COUNT, MPI_Count),
    SAME(MPI_OFFSET, MPI_Offset),
    SAME(MPI_PACKED, char),
    SAME(MPI_BYTE, char),
    SAME(MPI_CHAR, char),
    SAME(MPI_SIGNED_CHAR, char),
    SAME(MPI_UNSIGNED_CHAR, char),
    SAME(MPI_WCHAR, wchar_t),
    SAME(MPI_SHORT, short),
    SAME(MPI_INT, int),
    SAME(MPI_LONG, long),
    SAME(MPI_LONG_LONG, long long),
    SAME(MPI_LONG_LONG_INT, long long),
    SAME(MPI_UNSIGNED_SHORT, short),
    SAME(MPI_UNSIGNED, int),
    SAME(MPI_UNSIGNED_LONG, long),
    SAME(MPI_UNSIGNED_LONG_LONG, long long),
    SAME(MPI_INT8_T, int8_t),
    SAME(MPI_INT16_T, int16_t),
    SAME(MPI_INT32_T, int32_t),
    SAME(MPI_INT64_T, int64_t),
    SAME(MPI_UINT8_T, int8_t),
    SAME(MPI_UINT16_T, int16_t),
    SAME(MPI_UINT32_T, int32_t),
    SAME(MPI_UINT64_T, int64_t),
    SAME(MPI_FLOAT, float),
    SAME(MPI_DOUBLE, double),
    SAME(MPI_LONG_DOUBLE, long double),
    SAME(MPI_C_BOOL, bool),
    SAME(MPI_C_COMPLEX, float complex),
    SAME(MPI_C_FLOAT_COMPLEX, float complex),
    SAME(MPI_C_DOUBLE_COMPLEX, double complex),
    SAME(MPI_C_LONG_DOUBLE_COMPLEX, long double complex),
    SAME(MPI_CXX_BOOL, bool),
    SAME(MPI_CXX_FLOAT_COMPLEX, float complex),
    SAME(MPI_CXX_DOUBLE_COMPLEX, double complex),
    SAME(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex),
    PAIR(MPI_FLOAT_INT, struct float_int, float),
    PAIR(MPI_DOUBLE_INT, struct double_int, double),
    PAIR(MPI_LONG_INT, struct long_int, long),
    PAIR(MPI_SHORT_INT, struct short_int, short),
    PAIR(MPI_LONG_DOUBLE_INT, struct long_double_int, long double),
    {MPI_2INT, "MPI_2INT", 2 * sizeof(int), 2 * sizeof(int)},
    SAME(MPI_CHARACTER, char),
    SAME(MPI_INTEGER, int),
    SAME(MPI_REAL, float),
    SAME(MPI_DOUBLE_PRECISION, double),
    SAME(MPI_LOGICAL, int),
    SAME(MPI_COMPLEX, float complex),
    SAME(MPI_DOUBLE_COMPLEX, double complex),
    {MPI_2INTEGER, "MPI_2INTEGER", 8, 8},
    {MPI_2REAL, "MPI_2REAL", 8, 8},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", 16, 16},
    SAME(MPI_INTEGER1, int8_t),
    SAME(MPI_INTEGER2, int16_t),
    SAME(MPI_INTEGER4, int32_t),
    SAME(MPI_INTEGER8, int64_t),
    SAME(MPI_REAL4, float),
    SAME(MPI_REAL8, double),
    SAME(MPI_COMPLEX8, float complex),
    SAME(MPI_COMPLEX16, double complex),
    SAME(MPI_LOGICAL1, int8_t),
    SAME(MPI_LOGICAL2, int16_t),
    SAME(MPI_LOGICAL4, int32_t),
    SAME(MPI_LOGICAL8, int64_t),
};
enum { NAMED = sizeof named / sizeof *named };

/* Optional types: either not supported at all or of this size. */
static const struct named optional[] = {
    {MPI_REAL2, "MPI_REAL2", 2, 2},           {MPI_REAL16, "MPI_REAL16", 16, 16},
    {MPI_COMPLEX4, "MPI_COMPLEX4", 4, 4},     {MPI_COMPLEX32, "MPI_COMPLEX32", 32, 32},
    {MPI_INTEGER16, "MPI_INTEGER16", 16, 16}, {MPI_LOGICAL16, "MPI_LOGICAL16", 16, 16},
};

static void check_sizes(const struct named *t)
{
    int size = -1;
    MPI_Aint lb = -1, extent = -1;
    MPI_Count size_c = -1, lb_c = -1, extent_c = -1, size_x = -1;
    char what[64];
    snprintf(what, sizeof what, "%s %s", "sizes of", t->name);
    lt_current = what;
    OK(MPI_Type_size(t->type, &size));
    OK(MPI_Type_size_c(t->type, &size_c));
    OK(MPI_Type_size_x(t->type, &size_x));
    OK(MPI_Type_get_extent(t->type, &lb, &extent));
    OK(MPI_Type_get_extent_c(t->type, &lb_c, &extent_c));
    CHECK_INT(size, t->size);
    CHECK_INT(size_c, t->size);
    CHECK_INT(size_x, t->size);
    CHECK_INT(lb, 0);
    CHECK_INT(extent, t->extent);
    CHECK_INT(lb_c, 0);
    CHECK_INT(extent_c, t->extent);
    OK(MPI_Type_get_true_extent(t->type, &lb, &extent));
    CHECK_INT(lb, 0);
    CHECK(extent >= (MPI_Aint)t->size && extent <= (MPI_Aint)t->extent);
    lt_current = "sizes";
}

static void sizes(void)
{
    for (int i = 0; i < NAMED; i++)
        check_sizes(&named[i]);
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        int size = MPI_UNDEFINED;
        if (MPI_Type_size(optional[i].type, &size) == MPI_SUCCESS && size != MPI_UNDEFINED && size != 0)
            check_sizes(&optional[i]);
    }
}

static void names(void)
{
    for (int i = 0; i < NAMED; i++) {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = -1;
        OK(MPI_Type_get_name(named[i].type, name, &length));
        CHECK_INT(length, strlen(name));
        int alias = named[i].type == MPI_LONG_LONG || named[i].type == MPI_C_FLOAT_COMPLEX;
        if (!alias)
            CHECK_STR(name, named[i].name);
    }
    MPI_Datatype type;
    char name[MPI_MAX_OBJECT_NAME] = "x", longest[MPI_MAX_OBJECT_NAME];
    int length = -1;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, "");
    CHECK_INT(length, 0);
    OK(MPI_Type_set_name(type, "a pair of numbers"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, "a pair of numbers");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Type_set_name(type, longest));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK_STR(name, longest);
    OK(MPI_Type_free(&type));
}

static void envelopes_are_named(void)
{
    for (int i = 0; i < NAMED; i++) {
        int integers = -1, addresses = -1, types = -1, combiner = -1;
        OK(MPI_Type_get_envelope(named[i].type, &integers, &addresses, &types, &combiner));
        CHECK_INT(integers, 0);
        CHECK_INT(addresses, 0);
        CHECK_INT(types, 0);
        CHECK_INT(combiner, MPI_COMBINER_NAMED);
    }
}

/* Every type goes around the ring; the gaps of pair types in the receive buffer stay as they are. */
static void transfer(void)
{
    enum { COUNT = 13 };
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int t = 0; t < NAMED; t++) {
        unsigned char out[COUNT * 32], in[COUNT * 32], expected[COUNT * 32];
        MPI_Status status;
        size_t n = COUNT * named[t].extent, first = named[t].extent - named[t].size, value;
        lt_fill(out, n, (uint64_t)(lt_rank + t));
        lt_fill(expected, n, (uint64_t)(from + t));
        memset(in, 0xcc, sizeof in);
        OK(MPI_Sendrecv(out, COUNT, named[t].type, to, t, in, COUNT, named[t].type, from, t, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, from, t, named[t].type, COUNT);
        /* A gap lies behind the value (short, int) or behind the integer (long, int). */
        value = named[t].type == MPI_SHORT_INT ? sizeof(short) : named[t].size;
        for (int i = 0; i < COUNT && first > 0; i++)
            memset(expected + (size_t)i * named[t].extent + value, 0xcc, first);
        if (!CHECK_BYTES(in, expected, n))
            lt_fail(__FILE__, __LINE__, "transfer of %s", named[t].name);
    }
}

static void match_size(void)
{
    MPI_Datatype type;
    int size = 0;
    static const struct {
        int class, size;
    } wanted[] = {{MPI_TYPECLASS_INTEGER, 1}, {MPI_TYPECLASS_INTEGER, 2}, {MPI_TYPECLASS_INTEGER, 4},
                  {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_REAL, 4},    {MPI_TYPECLASS_REAL, 8},
                  {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        OK(MPI_Type_match_size(wanted[i].class, wanted[i].size, &type));
        OK(MPI_Type_size(type, &size));
        CHECK_INT(size, wanted[i].size);
    }
    REFUSED(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type));
}

static void value_index(void)
{
    static const MPI_Datatype values[] = {MPI_FLOAT, MPI_DOUBLE, MPI_LONG, MPI_SHORT, MPI_INT, MPI_LONG_DOUBLE};
    static const MPI_Datatype pairs[] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                                         MPI_SHORT_INT, MPI_2INT,       MPI_LONG_DOUBLE_INT};
    for (int i = 0; i < 6; i++) {
        MPI_Datatype pair = MPI_DATATYPE_NULL;
        OK(MPI_Type_get_value_index(values[i], MPI_INT, &pair));
        CHECK_PTR(pair, pairs[i]);
    }
}

static void f90_types(void)
{
    MPI_Datatype type, again;
    int size, integers, addresses, types, combiner, parameters[2];
    MPI_Aint none[1];
    MPI_Datatype no_type[1];
    OK(MPI_Type_create_f90_real(15, 307, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 8);
    OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
    CHECK_INT(combiner, MPI_COMBINER_F90_REAL);
    CHECK_INT(integers, 2);
    OK(MPI_Type_get_contents(type, 2, 0, 0, parameters, none, no_type));
    CHECK_INT(parameters[0], 15);
    CHECK_INT(parameters[1], 307);
    OK(MPI_Type_create_f90_real(15, 307, &again));
    CHECK_PTR(again, type);
    OK(MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 8);
    OK(MPI_Type_create_f90_integer(9, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 4);
    OK(MPI_Type_create_f90_integer(18, &type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, 8);
    REFUSED(MPI_Type_create_f90_integer(200, &type));
}

LT_MAIN("type_basic", TEST(sizes), TEST(names), TEST(envelopes_are_named), TEST(transfer), TEST(match_size),
        TEST(value_index), TEST(f90_types))
