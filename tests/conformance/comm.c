/* Communicators: duplication, splitting, creation, comparison, names, hints, freeing: MPI-5 section 7.4. */
#include "limosa_test.h"

/* The communicator has this rank and size, and carries point-to-point and collective traffic of its own. */
static void check_comm(int line, MPI_Comm comm, int rank, int size)
{
    int got_rank = -1, got_size = -1, sum = -1, in = -1, inter = -1;
    OK(MPI_Comm_rank(comm, &got_rank));
    OK(MPI_Comm_size(comm, &got_size));
    lt_count_check();
    if (got_rank != rank || got_size != size) {
        lt_fail(__FILE__, line, "expected rank %d of %d, got %d of %d", rank, size, got_rank, got_size);
        return;
    }
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_INT(sum, size * (size - 1) / 2);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &in, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE));
    CHECK_INT(in, from);
    OK(MPI_Comm_test_inter(comm, &inter));
    CHECK_INT(inter, 0);
}

#define CHECK_COMM(comm, rank, size) check_comm(__LINE__, (comm), (rank), (size))

static void compare(void)
{
    MPI_Comm dup, reversed;
    int result = -1;
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, dup, &result));
    CHECK_INT(result, MPI_CONGRUENT);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -lt_rank, &reversed));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result));
    CHECK_INT(result, lt_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&reversed));
    CHECK_PTR(dup, MPI_COMM_NULL);
}

static void duplicates(void)
{
    MPI_Comm dup, of_dup, of_self;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    CHECK_COMM(dup, lt_rank, lt_size);
    OK(MPI_Comm_dup(dup, &of_dup));
    OK(MPI_Comm_free(&dup));
    CHECK_COMM(of_dup, lt_rank, lt_size);
    OK(MPI_Comm_free(&of_dup));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &of_self));
    CHECK_COMM(of_self, 0, 1);
    OK(MPI_Comm_free(&of_self));
}

/* Several duplications may be under way, and complete in any order. */
static void nonblocking_duplicates(void)
{
    MPI_Comm comms[3];
    MPI_Request requests[3];
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[0], &requests[0]));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[1], &requests[1]));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comms[2], &requests[2]));
    for (int i = 2; i >= 0; i--) {
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        CHECK_PTR(requests[i], MPI_REQUEST_NULL);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_COMM(comms[i], lt_rank, lt_size);
        OK(MPI_Comm_free(&comms[i]));
    }
}

static void hints(void)
{
    MPI_Info info, used = MPI_INFO_NULL;
    MPI_Comm comm;
    char value[MPI_MAX_INFO_VAL];
    int flag = 0, length = sizeof value;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Info_set(info, "no_such_hint_of_any_library", "1"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    CHECK_COMM(comm, lt_rank, lt_size);
    OK(MPI_Comm_get_info(comm, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &length, value, &flag));
    if (flag)
        CHECK_STR(value, "true");
    OK(MPI_Info_free(&used));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_get_info(MPI_COMM_WORLD, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_free(&used));
}

static void split(void)
{
    for (int parts = 1; parts <= 4; parts++) {
        MPI_Comm comm;
        int color = lt_rank % parts, size = (lt_size - color + parts - 1) / parts;
        OK(MPI_Comm_split(MPI_COMM_WORLD, color, lt_rank, &comm));
        CHECK_COMM(comm, lt_rank / parts, size);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_split(MPI_COMM_WORLD, color, -lt_rank, &comm));
        CHECK_COMM(comm, size - 1 - lt_rank / parts, size);
        OK(MPI_Comm_free(&comm));
        /* Equal keys: the order of the old communicator. */
        OK(MPI_Comm_split(MPI_COMM_WORLD, color, 7, &comm));
        CHECK_COMM(comm, lt_rank / parts, size);
        OK(MPI_Comm_free(&comm));
    }
}

static void split_with_ties_and_undefined(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    /* Key rank / 2, reversed pairs: ties inside a pair keep the old order. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, 1 << 30, -(lt_rank / 2), &comm));
    int rank = 0;
    for (int other = 0; other < lt_size; other++)
        rank += -(other / 2) < -(lt_rank / 2) || (other / 2 == lt_rank / 2 && other < lt_rank);
    CHECK_COMM(comm, rank, lt_size);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank == 0 ? MPI_UNDEFINED : 3, 0, &comm));
    if (lt_rank == 0) {
        CHECK_PTR(comm, MPI_COMM_NULL);
    } else {
        CHECK_COMM(comm, lt_rank - 1, lt_size - 1);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &comm));
    CHECK_PTR(comm, MPI_COMM_NULL);
}

static void split_by_type(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -lt_rank, MPI_INFO_NULL, &comm));
    CHECK(comm != MPI_COMM_NULL);
    int here = 0, before = 0, after = 0; /* ranks of this host: all, those before this one, and those after it */
    for (int r = 0; r < lt_size; r++) {
        here += lt_host(r) == lt_host(lt_rank);
        before += r < lt_rank && lt_host(r) == lt_host(lt_rank);
        after += r > lt_rank && lt_host(r) == lt_host(lt_rank);
    }
    CHECK_COMM(comm, after, here);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm));
    CHECK_PTR(comm, MPI_COMM_NULL);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, lt_rank == lt_size - 1 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0,
                           MPI_INFO_NULL, &comm));
    if (lt_rank == lt_size - 1) {
        CHECK_PTR(comm, MPI_COMM_NULL);
    } else {
        CHECK_COMM(comm, before, here - (lt_host(lt_size - 1) == lt_host(lt_rank)));
        OK(MPI_Comm_free(&comm));
    }
}

static void create_from_group(void)
{
    MPI_Group world, odd;
    MPI_Comm comm = MPI_COMM_WORLD;
    int ranks[128], n = 0;
    for (int rank = lt_size - 1; rank >= 0; rank--) {
        if (rank % 2)
            ranks[n++] = rank;
    }
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, n, ranks, &odd));
    OK(MPI_Comm_create(MPI_COMM_WORLD, odd, &comm));
    if (lt_rank % 2 == 0) {
        CHECK_PTR(comm, MPI_COMM_NULL);
    } else {
        CHECK_COMM(comm, n - 1 - lt_rank / 2, n);
        OK(MPI_Comm_free(&comm));
        /* Only the members call. */
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5, &comm));
        CHECK_COMM(comm, n - 1 - lt_rank / 2, n);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK_PTR(comm, MPI_COMM_NULL);
    if (odd != MPI_GROUP_EMPTY)
        OK(MPI_Group_free(&odd));
    /* Disjoint groups in one call. */
    MPI_Group half;
    int first = lt_rank < lt_size / 2 ? 0 : lt_size / 2, last = lt_rank < lt_size / 2 ? lt_size / 2 : lt_size;
    int range[1][3] = {{first, last - 1, 1}};
    OK(MPI_Group_range_incl(world, 1, range, &half));
    OK(MPI_Comm_create(MPI_COMM_WORLD, half, &comm));
    CHECK_COMM(comm, lt_rank - first, last - first);
    OK(MPI_Comm_free(&comm));
    /* Repeatedly, with the same group and tag: each communicator is a new one. */
    MPI_Comm again[3];
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, half, 9, &again[i]));
    for (int i = 2; i >= 0; i--) {
        CHECK_COMM(again[i], lt_rank - first, last - first);
        OK(MPI_Comm_free(&again[i]));
    }
    OK(MPI_Group_free(&half));
    OK(MPI_Group_free(&world));
}

/* Pairs of ranks make communicators while the others do something else, in an order that differs from rank to rank. */
static void create_group_among_few(void)
{
    MPI_Group world, pair;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int distance = 1; distance < lt_size; distance++) {
        int partner = lt_rank ^ distance;
        if (partner >= lt_size)
            continue;
        int ranks[] = {lt_rank < partner ? lt_rank : partner, lt_rank < partner ? partner : lt_rank};
        MPI_Comm comm;
        OK(MPI_Group_incl(world, 2, ranks, &pair));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, pair, 1, &comm));
        CHECK_COMM(comm, lt_rank > partner, 2);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&pair));
    }
    OK(MPI_Group_free(&world));
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_OBJECT_NAME];
    int length = -1;
    MPI_Comm comm;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK_STR(name, "MPI_COMM_WORLD");
    CHECK_INT(length, 14);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK_STR(name, "MPI_COMM_SELF");
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK_STR(name, "MPI_COMM_NULL");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_STR(name, "");
    OK(MPI_Comm_set_name(comm, "left neighbours"));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_STR(name, "left neighbours");
    CHECK_INT(length, 15);
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Comm_set_name(comm, longest));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_STR(name, longest);
    OK(MPI_Comm_free(&comm));
}

/* A freed communicator's pending messages still arrive. */
static void free_with_pending_traffic(void)
{
    enum { N = 100000 };
    static unsigned char out[N], in[N];
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size, small = -1;
    MPI_Comm comm;
    MPI_Request requests[4];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    lt_fill(out, N, (uint64_t)lt_rank);
    OK(MPI_Irecv(in, N, MPI_BYTE, from, 1, comm, &requests[0]));
    OK(MPI_Irecv(&small, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[1]));
    OK(MPI_Isend(out, N, MPI_BYTE, to, 1, comm, &requests[2]));
    OK(MPI_Isend(&lt_rank, 1, MPI_INT, to, 2, comm, &requests[3]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    CHECK_FILLED(in, N, (uint64_t)from);
    CHECK_INT(small, from);
}

/* Thousands of communicators in turn, and a hundred at the same time. */
static void many(void)
{
    MPI_Comm comms[100];
    for (int i = 0; i < 2000; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_free(&comm));
    }
    for (int i = 0; i < 100; i++)
        OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank % 2, 0, &comms[i]));
    for (int i = 99; i >= 0; i--)
        OK(MPI_Comm_free(&comms[i]));
}

static void disconnect(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CHECK_COMM(comm, lt_rank, lt_size);
    OK(MPI_Comm_disconnect(&comm));
    CHECK_PTR(comm, MPI_COMM_NULL);
}

LT_MAIN("comm", TEST(compare), TEST(duplicates), TEST(nonblocking_duplicates), TEST(hints), TEST(split),
        TEST(split_with_ties_and_undefined), TEST(split_by_type), TEST(create_from_group), TEST(create_group_among_few),
        TEST(names), TEST(free_with_pending_traffic), TEST(many), TEST(disconnect))
