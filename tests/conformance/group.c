/* Groups against an obvious list model: MPI-5 section 7.3. */
#include "limosa_test.h"

static MPI_Group world;

/* The world ranks of a group's members, in order. */
static int members(MPI_Group group, int *ranks)
{
    int n = -1;
    OK(MPI_Group_size(group, &n));
    for (int i = 0; i < n; i++)
        OK(MPI_Group_translate_ranks(group, 1, &i, world, &ranks[i]));
    return n;
}

static void check_group(int line, MPI_Group group, int n, const int *expected)
{
    int got[256], size = members(group, got), rank = -1, mine = MPI_UNDEFINED;
    lt_count_check();
    if (size != n)
        lt_fail(__FILE__, line, "group size: expected %d, got %d", n, size);
    for (int i = 0; i < n && i < size; i++) {
        if (got[i] != expected[i])
            lt_fail(__FILE__, line, "member %d: expected world rank %d, got %d", i, expected[i], got[i]);
        if (expected[i] == lt_rank)
            mine = i;
    }
    OK(MPI_Group_rank(group, &rank));
    if (rank != mine)
        lt_fail(__FILE__, line, "own rank: expected %d, got %d", mine, rank);
}

#define CHECK_GROUP(group, n, ...) check_group(__LINE__, (group), (n), (const int[]){__VA_ARGS__})

/* A group of those members of `set` (a bit mask of world ranks), from the highest rank down if `reversed`. */
static int list_of(unsigned set, int reversed, int *ranks)
{
    int n = 0;
    for (int i = 0; i < lt_size; i++) {
        int rank = reversed ? lt_size - 1 - i : i;
        if (set >> rank & 1)
            ranks[n++] = rank;
    }
    return n;
}

static void setup(void)
{
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int n = -1, rank = -1;
    OK(MPI_Group_size(world, &n));
    OK(MPI_Group_rank(world, &rank));
    CHECK_INT(n, lt_size);
    CHECK_INT(rank, lt_rank);
    OK(MPI_Group_size(MPI_GROUP_EMPTY, &n));
    CHECK_INT(n, 0);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
    CHECK_INT(rank, MPI_UNDEFINED);
}

static int contains(int n, const int *ranks, int rank)
{
    for (int i = 0; i < n; i++) {
        if (ranks[i] == rank)
            return 1;
    }
    return 0;
}

/* Union, intersection, difference, comparison and translation of all pairs of subsets (of the first five ranks), in
 * both orders. */
static void set_operations(void)
{
    unsigned sets = 1u << (lt_size < 5 ? lt_size : 5);
    for (unsigned a = 0; a < sets; a++) {
        for (unsigned b = 0; b < sets; b++) {
            int x[32], y[32], expected[64], nx = list_of(a, 0, x), ny = list_of(b, (int)(a + b) % 2, y), n = 0,
                                            result = -1;
            MPI_Group gx, gy, out;
            OK(MPI_Group_incl(world, nx, x, &gx));
            OK(MPI_Group_incl(world, ny, y, &gy));
            for (int i = 0; i < nx; i++)
                expected[n++] = x[i];
            for (int i = 0; i < ny; i++) {
                if (!contains(nx, x, y[i]))
                    expected[n++] = y[i];
            }
            OK(MPI_Group_union(gx, gy, &out));
            check_group(__LINE__, out, n, expected);
            if (out != MPI_GROUP_EMPTY)
                OK(MPI_Group_free(&out));
            n = 0;
            for (int i = 0; i < nx; i++) {
                if (contains(ny, y, x[i]))
                    expected[n++] = x[i];
            }
            OK(MPI_Group_intersection(gx, gy, &out));
            check_group(__LINE__, out, n, expected);
            if (out != MPI_GROUP_EMPTY)
                OK(MPI_Group_free(&out));
            n = 0;
            for (int i = 0; i < nx; i++) {
                if (!contains(ny, y, x[i]))
                    expected[n++] = x[i];
            }
            OK(MPI_Group_difference(gx, gy, &out));
            check_group(__LINE__, out, n, expected);
            if (out != MPI_GROUP_EMPTY)
                OK(MPI_Group_free(&out));
            OK(MPI_Group_compare(gx, gy, &result));
            int same = nx == ny && memcmp(x, y, sizeof(int) * (size_t)nx) == 0;
            CHECK_INT(result, same ? MPI_IDENT : a == b ? MPI_SIMILAR : MPI_UNEQUAL);
            int ranks[32], places[32];
            for (int i = 0; i < nx; i++)
                ranks[i] = i;
            OK(MPI_Group_translate_ranks(gx, nx, ranks, gy, places));
            for (int i = 0; i < nx; i++) {
                int place = MPI_UNDEFINED;
                for (int k = 0; k < ny; k++)
                    place = y[k] == x[i] ? k : place;
                CHECK_INT(places[i], place);
            }
            if (gx != MPI_GROUP_EMPTY)
                OK(MPI_Group_free(&gx));
            if (gy != MPI_GROUP_EMPTY)
                OK(MPI_Group_free(&gy));
        }
    }
}

static void empty_groups(void)
{
    MPI_Group group;
    int result = -1;
    OK(MPI_Group_incl(world, 0, NULL, &group));
    OK(MPI_Group_compare(group, MPI_GROUP_EMPTY, &result));
    CHECK_INT(result, MPI_IDENT);
    int all[256];
    for (int i = 0; i < lt_size; i++)
        all[i] = i;
    OK(MPI_Group_excl(world, lt_size, all, &group));
    CHECK_GROUP(group, 0, 0);
    OK(MPI_Group_excl(world, 0, NULL, &group));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    CHECK_PTR(group, MPI_GROUP_NULL);
    OK(MPI_Group_union(MPI_GROUP_EMPTY, world, &group));
    OK(MPI_Group_compare(group, world, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
}

static void include_and_exclude(void)
{
    if (lt_size < 4)
        return;
    MPI_Group group, part;
    OK(MPI_Group_incl(world, 3, ((const int[]){3, 0, 2}), &group));
    CHECK_GROUP(group, 3, 3, 0, 2);
    OK(MPI_Group_incl(group, 2, ((const int[]){2, 0}), &part));
    CHECK_GROUP(part, 2, 2, 3);
    OK(MPI_Group_free(&part));
    OK(MPI_Group_excl(group, 1, ((const int[]){1}), &part));
    CHECK_GROUP(part, 2, 3, 2);
    OK(MPI_Group_free(&part));
    OK(MPI_Group_free(&group));
    FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, &lt_size, &group));
    FAILS(MPI_ERR_RANK, MPI_Group_excl(world, 1, ((const int[]){-1}), &group));
    REFUSED(MPI_Group_incl(world, 2, ((const int[]){1, 1}), &group));
}

static void ranges(void)
{
    if (lt_size < 8)
        return;
    MPI_Group group;
    int up[1][3] = {{1, 7, 2}}, down[1][3] = {{7, 0, -3}}, two[2][3] = {{6, 7, 1}, {0, 4, 4}},
        single[1][3] = {{3, 3, 1}};
    int short_of[1][3] = {{0, 5, 3}};
    OK(MPI_Group_range_incl(world, 1, up, &group));
    CHECK_GROUP(group, 4, 1, 3, 5, 7);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_incl(world, 1, down, &group));
    CHECK_GROUP(group, 3, 7, 4, 1);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_incl(world, 2, two, &group));
    CHECK_GROUP(group, 4, 6, 7, 0, 4);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_incl(world, 1, single, &group));
    CHECK_GROUP(group, 1, 3);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_incl(world, 1, short_of, &group));
    CHECK_GROUP(group, 2, 0, 3);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_excl(world, 1, up, &group));
    CHECK_GROUP(group, lt_size - 4, 0, 2, 4, 6);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_range_excl(world, 2, two, &group));
    CHECK_GROUP(group, lt_size - 4, 1, 2, 3, 5);
    OK(MPI_Group_free(&group));
    int zero_stride[1][3] = {{1, 4, 0}}, outside[1][3] = {{0, lt_size, 1}};
    REFUSED(MPI_Group_range_incl(world, 1, zero_stride, &group));
    REFUSED(MPI_Group_range_incl(world, 1, outside, &group));
}

static void translate(void)
{
    int ranks[] = {MPI_PROC_NULL, 0}, places[2] = {5, 5};
    OK(MPI_Group_translate_ranks(world, 2, ranks, MPI_GROUP_EMPTY, places));
    CHECK_INT(places[0], MPI_PROC_NULL);
    CHECK_INT(places[1], MPI_UNDEFINED);
    OK(MPI_Group_translate_ranks(world, 0, NULL, world, NULL));
    FAILS(MPI_ERR_RANK, MPI_Group_translate_ranks(world, 1, &lt_size, world, places));
}

/* A group outlives the communicator that it came from. */
static void outlives_its_communicator(void)
{
    MPI_Comm reversed;
    MPI_Group group;
    int expected[256];
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -lt_rank, &reversed));
    OK(MPI_Comm_group(reversed, &group));
    OK(MPI_Comm_free(&reversed));
    for (int i = 0; i < lt_size; i++)
        expected[i] = lt_size - 1 - i;
    check_group(__LINE__, group, lt_size, expected);
    OK(MPI_Group_free(&group));
}

static void cleanup(void)
{
    OK(MPI_Group_free(&world));
}

LT_MAIN("group", TEST(setup), TEST(set_operations), TEST(empty_groups), TEST(include_and_exclude), TEST(ranges),
        TEST(translate), TEST(outlives_its_communicator), TEST(cleanup))
