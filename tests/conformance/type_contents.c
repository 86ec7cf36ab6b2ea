/* Envelope and contents of every combiner, in the small and the large-count form: MPI-5 section 5.1.13. */
#include "limosa_test.h"

/* What the constructor was given, in the order that the standard lays down for this combiner. */
struct expected {
    const char *name;
    MPI_Datatype type;
    int combiner, n_integers, n_addresses, n_types;
    int integers[24];
    MPI_Aint addresses[8];
    MPI_Datatype types[4];
};

static void check(struct expected e)
{
    const char *outer = lt_current;
    lt_current = e.name;
    int integers = -1, addresses = -1, types = -1, combiner = -1, i_got[24];
    MPI_Aint a_got[8];
    MPI_Datatype t_got[4];
    OK(MPI_Type_get_envelope(e.type, &integers, &addresses, &types, &combiner));
    CHECK_INT(combiner, e.combiner);
    CHECK_INT(integers, e.n_integers);
    CHECK_INT(addresses, e.n_addresses);
    CHECK_INT(types, e.n_types);
    if (OK(MPI_Type_get_contents(e.type, integers, addresses, types, i_got, a_got, t_got))) {
        for (int i = 0; i < integers; i++)
            CHECK_INT(i_got[i], e.integers[i]);
        for (int i = 0; i < addresses; i++)
            CHECK_INT(a_got[i], e.addresses[i]);
        for (int i = 0; i < types; i++) {
            /* Named types come back as themselves; derived ones as equal types that the caller frees. */
            int named, none, size_got, size_expected;
            OK(MPI_Type_size(t_got[i], &size_got));
            OK(MPI_Type_size(e.types[i], &size_expected));
            CHECK_INT(size_got, size_expected);
            OK(MPI_Type_get_envelope(e.types[i], &none, &none, &none, &named));
            if (named == MPI_COMBINER_NAMED)
                CHECK_PTR(t_got[i], e.types[i]);
            else
                OK(MPI_Type_free(&t_got[i]));
        }
    }
    if (integers > 0)
        REFUSED(MPI_Type_get_contents(e.type, integers - 1, addresses, types, i_got, a_got, t_got));
    /* The large-count form of the call reports a type of the small form without large counts. */
    MPI_Count n_integers = -1, n_addresses = -1, n_counts = -1, n_types = -1;
    OK(MPI_Type_get_envelope_c(e.type, &n_integers, &n_addresses, &n_counts, &n_types, &combiner));
    CHECK_INT(n_integers, e.n_integers);
    CHECK_INT(n_addresses, e.n_addresses);
    CHECK_INT(n_counts, 0);
    CHECK_INT(n_types, e.n_types);
    CHECK_INT(combiner, e.combiner);
    OK(MPI_Type_free(&e.type));
    lt_current = outer;
}

static void simple(void)
{
    MPI_Datatype t;
    OK(MPI_Type_dup(MPI_DOUBLE, &t));
    check((struct expected){"dup", t, MPI_COMBINER_DUP, 0, 0, 1, .types = {MPI_DOUBLE}});
    OK(MPI_Type_contiguous(7, MPI_CHAR, &t));
    check((struct expected){"contiguous", t, MPI_COMBINER_CONTIGUOUS, 1, 0, 1, {7}, .types = {MPI_CHAR}});
    OK(MPI_Type_vector(3, 2, -5, MPI_INT, &t));
    check((struct expected){"vector", t, MPI_COMBINER_VECTOR, 3, 0, 1, {3, 2, -5}, .types = {MPI_INT}});
    OK(MPI_Type_create_hvector(3, 2, -50, MPI_INT, &t));
    check((struct expected){"hvector", t, MPI_COMBINER_HVECTOR, 2, 1, 1, {3, 2}, {-50}, {MPI_INT}});
    OK(MPI_Type_create_resized(MPI_FLOAT, -4, 16, &t));
    check((struct expected){"resized", t, MPI_COMBINER_RESIZED, 0, 2, 1, {0}, {-4, 16}, {MPI_FLOAT}});
}

static void indexed(void)
{
    static const int lengths[] = {1, 2, 3}, at[] = {9, 4, -1};
    static const MPI_Aint bytes_at[] = {90, 40, -10};
    MPI_Datatype t;
    OK(MPI_Type_indexed(3, lengths, at, MPI_INT, &t));
    check((struct expected){"indexed", t, MPI_COMBINER_INDEXED, 7, 0, 1, {3, 1, 2, 3, 9, 4, -1}, .types = {MPI_INT}});
    OK(MPI_Type_create_hindexed(3, lengths, bytes_at, MPI_INT, &t));
    check((struct expected){"hindexed", t, MPI_COMBINER_HINDEXED, 4, 3, 1, {3, 1, 2, 3}, {90, 40, -10}, {MPI_INT}});
    OK(MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &t));
    check((struct expected){
        "indexed_block", t, MPI_COMBINER_INDEXED_BLOCK, 5, 0, 1, {3, 2, 9, 4, -1}, .types = {MPI_INT}});
    OK(MPI_Type_create_hindexed_block(3, 2, bytes_at, MPI_INT, &t));
    check(
        (struct expected){"hindexed_block", t, MPI_COMBINER_HINDEXED_BLOCK, 2, 3, 1, {3, 2}, {90, 40, -10}, {MPI_INT}});
}

static void structure(void)
{
    MPI_Datatype t, inner;
    OK(MPI_Type_vector(2, 1, 2, MPI_SHORT, &inner));
    const int lengths[] = {2, 1, 4};
    const MPI_Aint at[] = {0, 24, 64};
    const MPI_Datatype types[] = {MPI_DOUBLE, inner, MPI_CHAR};
    OK(MPI_Type_create_struct(3, lengths, at, types, &t));
    check((struct expected){
        "struct", t, MPI_COMBINER_STRUCT, 4, 3, 3, {3, 2, 1, 4}, {0, 24, 64}, {MPI_DOUBLE, inner, MPI_CHAR}});
    OK(MPI_Type_contiguous(2, inner, &t));
    check((struct expected){"contiguous of derived", t, MPI_COMBINER_CONTIGUOUS, 1, 0, 1, {2}, .types = {inner}});
    OK(MPI_Type_free(&inner));
}

static void arrays(void)
{
    static const int sizes[] = {6, 7}, sub[] = {2, 3}, start[] = {1, 4}, grid[] = {2, 1};
    static const int distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE},
                     arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Datatype t;
    OK(MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_FORTRAN, MPI_INT, &t));
    check((struct expected){
        "subarray", t, MPI_COMBINER_SUBARRAY, 8, 0, 1, {2, 6, 7, 2, 3, 1, 4, MPI_ORDER_FORTRAN}, .types = {MPI_INT}});
    OK(MPI_Type_create_darray(2, 1, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    check((struct expected){
        "darray",
        t,
        MPI_COMBINER_DARRAY,
        12,
        0,
        1,
        {2, 1, 2, 6, 7, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, 2, MPI_DISTRIBUTE_DFLT_DARG, 2, 1, MPI_ORDER_C},
        .types = {MPI_INT}});
}

/* The contents of a type made with a large count are large counts, and the small form of the call refuses them. */
static void large(void)
{
    MPI_Datatype t, inner[1];
    MPI_Count n_integers = -1, n_addresses = -1, n_counts = -1, n_types = -1, counts[3] = {0};
    int combiner = -1, integers[3];
    MPI_Aint addresses[3];
    OK(MPI_Type_vector_c(3, 2, 5000000000, MPI_INT, &t));
    OK(MPI_Type_get_envelope_c(t, &n_integers, &n_addresses, &n_counts, &n_types, &combiner));
    CHECK_INT(combiner, MPI_COMBINER_VECTOR);
    CHECK_INT(n_integers, 0);
    CHECK_INT(n_addresses, 0);
    CHECK_INT(n_counts, 3);
    CHECK_INT(n_types, 1);
    OK(MPI_Type_get_contents_c(t, 0, 0, 3, 1, integers, addresses, counts, inner));
    CHECK_INT(counts[0], 3);
    CHECK_INT(counts[1], 2);
    CHECK_INT(counts[2], 5000000000);
    CHECK_PTR(inner[0], MPI_INT);
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(t, 3, 3, 1, integers, addresses, inner));
    OK(MPI_Type_free(&t));
}

static void named_has_no_contents(void)
{
    int integers[1];
    MPI_Aint addresses[1];
    MPI_Datatype types[1];
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 0, 0, 0, integers, addresses, types));
}

LT_MAIN("type_contents", TEST(simple), TEST(indexed), TEST(structure), TEST(arrays), TEST(large),
        TEST(named_has_no_contents))
