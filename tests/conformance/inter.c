/* Intercommunicators: MPI-5 sections 7.6 and 6.2.2, messages and collectives between two groups.
 *
 * The groups are the even and the odd ranks of MPI_COMM_WORLD, in these or in reverse order; with one process there is
 * nothing to do but to be refused. */
#include "limosa_test.h"

static int in_low(void)
{
    return lt_rank % 2 == 0;
}

/* The intercommunicator of the even and the odd ranks; `reverse` turns the order inside the groups round. */
static MPI_Comm between(int reverse, int tag)
{
    MPI_Comm local, inter = MPI_COMM_NULL;
    int last, other, peers[2];
    OK(MPI_Comm_split(MPI_COMM_WORLD, in_low(), reverse ? -lt_rank : lt_rank, &local));
    OK(MPI_Comm_size(local, &last));
    last--;
    /* Each group is led by its last process. */
    other = lt_size - last - 1;
    peers[0] = reverse ? 0 : 2 * ((in_low() ? last + 1 : other) - 1);
    peers[1] = reverse ? 1 : 2 * ((in_low() ? other : last + 1) - 1) + 1;
    OK(MPI_Intercomm_create(local, last, MPI_COMM_WORLD, in_low() ? peers[1] : peers[0], tag, &inter));
    OK(MPI_Comm_free(&local));
    return inter;
}

static int world_of(MPI_Group group, int rank)
{
    MPI_Group world;
    int in_world = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(group, 1, &rank, world, &in_world));
    OK(MPI_Group_free(&world));
    return in_world;
}

/* World rank of a process of the local or the remote group. */
static int world_rank(MPI_Comm inter, int rank, int remote)
{
    MPI_Group group;
    OK(remote ? MPI_Comm_remote_group(inter, &group) : MPI_Comm_group(inter, &group));
    int in_world = world_of(group, rank);
    OK(MPI_Group_free(&group));
    return in_world;
}

static void check_messages(MPI_Comm inter)
{
    int rank, size, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_Request *requests = malloc(sizeof(MPI_Request) * 2 * remote);
    int *received = malloc(sizeof(int) * remote), any, mine = lt_rank;
    for (int r = 0; r < remote; r++) {
        OK(MPI_Irecv(&received[r], 1, MPI_INT, r, 5, inter, &requests[2 * r]));
        OK(MPI_Isend(&mine, 1, MPI_INT, r, 5, inter, &requests[2 * r + 1]));
    }
    OK(MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE));
    for (int r = 0; r < remote; r++)
        CHECK_INT(received[r], world_rank(inter, r, 1));
    /* From any rank: the status has a rank of the remote group. */
    for (int r = 0; r < remote; r++)
        OK(MPI_Isend(&mine, 1, MPI_INT, r, 6, inter, &requests[r]));
    for (int r = 0; r < remote; r++) {
        MPI_Status status;
        OK(MPI_Recv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 6, inter, &status));
        CHECK_INT(any, world_rank(inter, status.MPI_SOURCE, 1));
    }
    OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
    /* A pair: blocking, with MPI_PROC_NULL for ranks without partner. */
    int partner = rank < remote ? rank : MPI_PROC_NULL;
    any = UNTOUCHED;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, partner, 7, &any, 1, MPI_INT, partner, 7, inter, MPI_STATUS_IGNORE));
    CHECK_INT(any, partner == MPI_PROC_NULL ? UNTOUCHED : world_rank(inter, partner, 1));
    FAILS(MPI_ERR_RANK, MPI_Send(&mine, 1, MPI_INT, remote, 0, inter));
    FAILS(MPI_ERR_RANK, MPI_Recv(&any, 1, MPI_INT, remote, 0, inter, MPI_STATUS_IGNORE));
    free(requests);
    free(received);
}

static void groups_and_messages(void)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        MPI_Comm inter = between(reverse, 3 + reverse), copy, later;
        MPI_Request request;
        int flag, rank, size, remote, result;
        OK(MPI_Comm_test_inter(inter, &flag));
        CHECK(flag);
        OK(MPI_Comm_size(inter, &size));
        OK(MPI_Comm_remote_size(inter, &remote));
        OK(MPI_Comm_rank(inter, &rank));
        CHECK_INT(size + remote, lt_size);
        CHECK_INT(size, in_low() ? (lt_size + 1) / 2 : lt_size / 2);
        CHECK_INT(world_rank(inter, rank, 0), lt_rank);
        for (int r = 0; r < remote; r++)
            CHECK_INT(world_rank(inter, r, 1) % 2, in_low());
        check_messages(inter);
        OK(MPI_Comm_set_name(inter, "even and odd"));
        OK(MPI_Comm_dup(inter, &copy));
        OK(MPI_Comm_idup(copy, &later, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_compare(inter, copy, &result));
        CHECK_INT(result, MPI_CONGRUENT);
        OK(MPI_Comm_compare(inter, inter, &result));
        CHECK_INT(result, MPI_IDENT);
        OK(MPI_Comm_compare(inter, MPI_COMM_WORLD, &result));
        CHECK_INT(result, MPI_UNEQUAL);
        check_messages(copy);
        check_messages(later);
        /* Freed while messages are under way: they arrive. */
        MPI_Request both[2];
        int in = UNTOUCHED, partner = rank < remote ? rank : MPI_PROC_NULL;
        int expected = partner == MPI_PROC_NULL ? UNTOUCHED : world_rank(inter, partner, 1);
        OK(MPI_Irecv(&in, 1, MPI_INT, partner, 0, inter, &both[0]));
        OK(MPI_Isend(&lt_rank, 1, MPI_INT, partner, 0, inter, &both[1]));
        OK(MPI_Comm_free(&inter));
        CHECK(inter == MPI_COMM_NULL);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        CHECK_INT(in, expected);
        OK(MPI_Comm_free(&copy));
        OK(MPI_Comm_free(&later));
    }
}

static void merged_groups_are_in_order(void)
{
    MPI_Comm inter = between(0, 1), merged;
    for (int which = 0; which < 4; which++) {
        /* which: 0 the odd group is high, 1 the even one, 2 both, 3 none */
        int high = which == 2 || which == (in_low() ? 1 : 0), rank, size, value = 1, sum = 0, flag;
        OK(MPI_Intercomm_merge(inter, high, &merged));
        OK(MPI_Comm_test_inter(merged, &flag));
        CHECK(!flag);
        OK(MPI_Comm_rank(merged, &rank));
        OK(MPI_Comm_size(merged, &size));
        CHECK_INT(size, lt_size);
        int evens = (lt_size + 1) / 2, place = lt_rank / 2;
        if (which == 0)
            CHECK_INT(rank, in_low() ? place : evens + place);
        if (which == 1)
            CHECK_INT(rank, in_low() ? lt_size / 2 + place : place);
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged));
        CHECK_INT(sum, lt_size);
        OK(MPI_Comm_free(&merged));
    }
    if (lt_size > 2) {
        int rank;
        OK(MPI_Comm_rank(inter, &rank));
        FAILS(MPI_ERR_ARG, MPI_Intercomm_merge(inter, in_low() && rank == 0, &merged));
    }
    OK(MPI_Comm_free(&inter));
}

static void parts_of_both_groups(void)
{
    MPI_Comm inter = between(0, 2), part;
    int rank, size, remote, result;
    OK(MPI_Comm_rank(inter, &rank));
    /* By halves of the world: where a half has processes of one group only, there is nothing. */
    int color = lt_rank < lt_size / 2, evens = 0, odds = 0;
    for (int r = 0; r < lt_size; r++) {
        if ((r < lt_size / 2) == color)
            *(r % 2 ? &odds : &evens) += 1;
    }
    OK(MPI_Comm_split(inter, color, -rank, &part));
    CHECK((part != MPI_COMM_NULL) == (evens > 0 && odds > 0));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_remote_size(part, &remote));
        CHECK_INT(size, in_low() ? evens : odds);
        CHECK_INT(remote, in_low() ? odds : evens);
        check_messages(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(inter, MPI_UNDEFINED, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (lt_one_host()) {
        OK(MPI_Comm_compare(inter, part, &result));
        CHECK_INT(result, MPI_CONGRUENT);
        check_messages(part);
    }
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));

    /* The first of each group; and none of one. */
    MPI_Group mine, first;
    int zero = 0;
    OK(MPI_Comm_group(inter, &mine));
    OK(MPI_Group_incl(mine, 1, &zero, &first));
    OK(MPI_Comm_create(inter, first, &part));
    CHECK((part != MPI_COMM_NULL) == (rank == 0));
    if (part != MPI_COMM_NULL) {
        check_messages(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create(inter, in_low() ? mine : MPI_GROUP_EMPTY, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&mine));
    OK(MPI_Comm_free(&inter));
}

/* An attribute is copied and deleted, hints and the error handler behave as on any communicator. */
static void attributes_hints_and_handlers(void)
{
    MPI_Comm inter = between(0, 9), copy;
    int key, flag, length;
    void *value;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(inter, key, &key));
    OK(MPI_Comm_set_name(inter, "x"));
    MPI_Errhandler errhandler;
    OK(MPI_Comm_get_errhandler(inter, &errhandler));
    CHECK(errhandler == MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Comm_get_attr(copy, key, &value, &flag));
    CHECK(flag && value == &key);
    OK(MPI_Comm_get_name(inter, name, &length));
    CHECK(strcmp(name, "x") == 0);
    OK(MPI_Comm_get_name(copy, name, &length));
    CHECK_INT(length, 0);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free_keyval(&key));
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Element i of what the process of this world rank sends to place `to`. */
static int value(int world, int to, int i)
{
    return 100000 * world + 1000 * to + i % 997;
}

static void check_all(const int *got, int n, int world, int to, const char *what)
{
    for (int i = 0; i < n; i++) {
        int expected = world < 0 ? UNTOUCHED : value(world, to, i);
        lt_count_check();
        if (got[i] != expected) {
            lt_fail(__FILE__, __LINE__, "%s: element %d of %d: expected %d, got %d", what, i, n, expected, got[i]);
            return;
        }
    }
}

/* The sum of element i of what all processes of a group send to place 0. */
static int sum_of(MPI_Comm inter, int remote, int i)
{
    int size, sum = 0;
    if (remote)
        MPI_Comm_remote_size(inter, &size);
    else
        MPI_Comm_size(inter, &size);
    for (int r = 0; r < size; r++)
        sum += value(2 * r + (remote ? in_low() : !in_low()), 0, i);
    return sum;
}

static void with_a_root(MPI_Comm inter, int form, int count, int root_low, int root)
{
    int rank, size, remote, is_here = in_low() == root_low;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    int argument = !is_here ? root : rank == root ? MPI_ROOT : MPI_PROC_NULL, is_root = is_here && rank == root;
    int world_root = 2 * root + !root_low;

    int *buffer = fresh(count);
    for (int i = 0; is_root && i < count; i++)
        buffer[i] = value(lt_rank, 0, i);
    COLLECTIVE(form, Bcast, Ibcast, inter, buffer, count, MPI_INT, argument);
    check_all(buffer, count, is_root || !is_here ? world_root : -1, 0, "bcast");
    free(buffer);

    int *send = fresh((size_t)remote * count), *all = fresh((size_t)remote * count), *own = fresh(count);
    int *counts = malloc(sizeof(int) * remote), *displs = malloc(sizeof(int) * remote);
    for (int i = 0; i < count; i++)
        own[i] = value(lt_rank, 0, i);
    for (int r = 0; r < remote; r++) {
        counts[r] = count;
        displs[r] = (remote - 1 - r) * count;
    }
    COLLECTIVE(form, Gather, Igather, inter, own, count, MPI_INT, all, count, MPI_INT, argument);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, is_root ? 2 * r + in_low() : -1, 0, "gather");
    COLLECTIVE(form, Gatherv, Igatherv, inter, own, count, MPI_INT, all, counts, displs, MPI_INT, argument);
    for (int r = 0; r < remote; r++)
        check_all(all + displs[r], count, is_root ? 2 * r + in_low() : -1, 0, "gatherv");

    int *sum = fresh(count);
    COLLECTIVE(form, Reduce, Ireduce, inter, own, sum, count, MPI_INT, MPI_SUM, argument);
    for (int i = 0; i < count; i += 1 + count / 7)
        CHECK_INT(sum[i], is_root ? sum_of(inter, 1, i) : UNTOUCHED);
    free(sum);
    free(own);

    own = fresh(count);
    for (int r = 0; r < remote; r++) {
        for (int i = 0; i < count; i++)
            send[r * count + i] = value(lt_rank, r, i);
    }
    COLLECTIVE(form, Scatter, Iscatter, inter, send, count, MPI_INT, own, count, MPI_INT, argument);
    check_all(own, count, is_here ? -1 : world_root, rank, "scatter");
    COLLECTIVE(form, Scatterv, Iscatterv, inter, send, counts, displs, MPI_INT, own, count, MPI_INT, argument);
    int others;
    OK(MPI_Comm_size(inter, &others));
    check_all(own, count, is_here ? -1 : world_root, others - 1 - rank, "scatterv");
    free(own);
    free(send);
    free(all);
    free(counts);
    free(displs);
}

static void between_all(MPI_Comm inter, int form, int count)
{
    int rank, size, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    int *send = fresh((size_t)remote * count), *all = fresh((size_t)remote * count);
    int *counts = malloc(sizeof(int) * (remote + size)), *displs = malloc(sizeof(int) * remote);
    int *bytes = malloc(sizeof(int) * remote);
    MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * remote);
    for (int r = 0; r < remote; r++) {
        counts[r] = count;
        displs[r] = r * count;
        bytes[r] = displs[r] * (int)sizeof(int);
        types[r] = MPI_INT;
        for (int i = 0; i < count; i++)
            send[r * count + i] = value(lt_rank, r, i);
    }
#define FORGET memset(all, 0, sizeof(int) * remote * count)
    COLLECTIVE(form, Alltoall, Ialltoall, inter, send, count, MPI_INT, all, count, MPI_INT);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, 2 * r + in_low(), rank, "alltoall");
    FORGET;
    COLLECTIVE(form, Alltoallv, Ialltoallv, inter, send, counts, displs, MPI_INT, all, counts, displs, MPI_INT);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, 2 * r + in_low(), rank, "alltoallv");
    FORGET;
    COLLECTIVE(form, Alltoallw, Ialltoallw, inter, send, counts, bytes, types, all, counts, bytes, types);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, 2 * r + in_low(), rank, "alltoallw");
    FORGET;
    COLLECTIVE(form, Allgather, Iallgather, inter, send, count, MPI_INT, all, count, MPI_INT);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, 2 * r + in_low(), 0, "allgather");
    FORGET;
    COLLECTIVE(form, Allgatherv, Iallgatherv, inter, send, count, MPI_INT, all, counts, displs, MPI_INT);
    for (int r = 0; r < remote; r++)
        check_all(all + r * count, count, 2 * r + in_low(), 0, "allgatherv");
    free(all);

    int *sum = fresh(count);
    COLLECTIVE(form, Allreduce, Iallreduce, inter, send, sum, count, MPI_INT, MPI_SUM);
    for (int i = 0; i < count; i += 1 + count / 7)
        CHECK_INT(sum[i], sum_of(inter, 1, i));
    free(sum);
    free(send);

    /* The same number of elements in both groups: a multiple of both sizes. */
    int whole = size * remote * count, part = whole / size;
    send = fresh(whole);
    sum = fresh(part);
    for (int i = 0; i < whole; i++)
        send[i] = value(lt_rank, 0, i);
    COLLECTIVE(form, Reduce_scatter_block, Ireduce_scatter_block, inter, send, sum, part, MPI_INT, MPI_SUM);
    for (int i = 0; i < part; i += 1 + part / 7)
        CHECK_INT(sum[i], sum_of(inter, 1, rank * part + i));
    for (int r = 0; r < size; r++)
        counts[r] = part;
    memset(sum, 0, sizeof(int) * part);
    COLLECTIVE(form, Reduce_scatter, Ireduce_scatter, inter, send, sum, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < part; i += 1 + part / 7)
        CHECK_INT(sum[i], sum_of(inter, 1, rank * part + i));
    free(sum);
    free(send);
    free(counts);
    free(displs);
    free(bytes);
    free(types);

    MPI_Request request;
    if (form == 0) {
        OK(MPI_Barrier(inter));
    } else if (form == 1) {
        OK(MPI_Ibarrier(inter, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Barrier_init(inter, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
}

static void collectives(void)
{
    static const int counts[] = {0, 1, 100, 30000};
    MPI_Comm inter = between(0, 4);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int form = 0; form < 3; form++) {
            with_a_root(inter, form, counts[c], 1, 0);
            with_a_root(inter, form, counts[c], 0, 0);
            with_a_root(inter, form, counts[c], 1, (lt_size + 1) / 2 - 1);
            with_a_root(inter, form, counts[c], 0, lt_size / 2 - 1);
            between_all(inter, form, counts[c]);
        }
    }
    OK(MPI_Comm_free(&inter));
}

/* A barrier holds the members of one group until those of the other have come. */
static void barriers_wait_for_the_other_group(void)
{
    MPI_Comm inter = between(1, 5);
    int come = 0, rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (int round = 0; round < 20; round++) {
        MPI_Request request;
        OK(MPI_Ibarrier(inter, &request));
        if (rank == 0) {
            /* The first of each group waits for its partner's word before it looks: no rank needs it for the barrier.
             */
            int word = round;
            OK(MPI_Sendrecv(&word, 1, MPI_INT, 0, 8, &come, 1, MPI_INT, 0, 8, inter, MPI_STATUS_IGNORE));
            CHECK_INT(come, round);
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(inter));
    }
    OK(MPI_Comm_free(&inter));
}

static void wrong_use_is_refused(void)
{
    MPI_Comm inter = between(0, 6), other;
    int send[8] = {0}, receive[8], remote, rank, flag;
    MPI_Request request;
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Comm_rank(inter, &rank));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(send, 1, MPI_INT, remote, inter));
    FAILS(MPI_ERR_ROOT, MPI_Gather(send, 1, MPI_INT, receive, 1, MPI_INT, -99, inter));
    FAILS(MPI_ERR_COMM, MPI_Scan(send, receive, 1, MPI_INT, MPI_SUM, inter));
    FAILS(MPI_ERR_COMM, MPI_Exscan(send, receive, 1, MPI_INT, MPI_SUM, inter));
    FAILS(MPI_ERR_COMM, MPI_Iscan(send, receive, 1, MPI_INT, MPI_SUM, inter, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, receive, 1, MPI_INT, MPI_SUM, inter));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, receive, 1, MPI_INT, inter));
    FAILS(MPI_ERR_OP, MPI_Allreduce(send, receive, 1, MPI_FLOAT, MPI_BAND, inter));
    FAILS(MPI_ERR_COMM, MPI_Cart_create(inter, 0, NULL, NULL, 0, &other));
    FAILS(MPI_ERR_COMM, MPI_Graph_create(inter, 0, NULL, NULL, 0, &other));
    FAILS(MPI_ERR_COMM, MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                                       MPI_INFO_NULL, 0, &other));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, inter));
    FAILS(MPI_ERR_COMM, MPI_Comm_create_group(inter, MPI_GROUP_EMPTY, 0, &other));
    MPI_Win window;
    FAILS(MPI_ERR_COMM, MPI_Win_create(send, sizeof send, 1, MPI_INFO_NULL, inter, &window));
    FAILS(MPI_ERR_COMM, MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &window));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &other));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &other));
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &flag));
    /* It works as before. */
    OK(MPI_Barrier(inter));
    check_messages(inter);
    OK(MPI_Comm_free(&inter));
}

/* A wrong argument of the leader is an error for its whole group. */
static void leaders_that_fail_tell_their_group(void)
{
    MPI_Comm other;
    FAILS(MPI_ERR_RANK, MPI_Intercomm_create(MPI_COMM_WORLD, lt_size, MPI_COMM_WORLD, 0, 0, &other));
    int leads = lt_rank == 0;
    if (leads) {
        FAILS(MPI_ERR_COMM, MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_NULL, 0, 0, &other));
        FAILS(MPI_ERR_RANK, MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, lt_size, 0, &other));
        FAILS(MPI_ERR_RANK, MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, 0, 0, &other));
        FAILS(MPI_ERR_TAG, MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, 0, -1, &other));
    } else {
        for (int i = 0; i < 4; i++)
            REFUSED(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_NULL, -5, -1, &other));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void from_groups_of_sessions(void)
{
    MPI_Session session;
    MPI_Group world, mine, others;
    MPI_Comm inter;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    int even[1][3] = {{0, lt_size - 1 - (lt_size - 1) % 2, 2}}, odd[1][3] = {{1, lt_size - 1 - lt_size % 2, 2}};
    OK(MPI_Group_range_incl(world, 1, in_low() ? even : odd, &mine));
    OK(MPI_Group_range_incl(world, 1, in_low() ? odd : even, &others));
    for (int i = 0; i < 3; i++) {
        /* Only the leader's word about the others counts. */
        int rank, leads;
        OK(MPI_Group_rank(mine, &rank));
        leads = rank == 0;
        OK(MPI_Intercomm_create_from_groups(mine, 0, leads ? others : MPI_GROUP_NULL, leads ? 0 : -9, "limosa",
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        check_messages(inter);
        with_a_root(inter, i, 10, i % 2, 0);
        OK(MPI_Comm_free(&inter));
    }
    inter = MPI_COMM_WORLD;
    OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, others, 0, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                        &inter));
    CHECK(inter == MPI_COMM_NULL);
    inter = MPI_COMM_WORLD;
    OK(MPI_Intercomm_create_from_groups(mine, 0, MPI_GROUP_EMPTY, 0, "no group", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                        &inter));
    CHECK(inter == MPI_COMM_NULL);
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&session));
}

static void many_at_once(void)
{
    enum { N = 30 };
    MPI_Comm inter = between(0, 7);
    MPI_Request requests[N];
    int send[N], sum[N];
    for (int i = 0; i < N; i++) {
        send[i] = value(lt_rank, 0, i);
        OK(MPI_Iallreduce(&send[i], &sum[i], 1, MPI_INT, MPI_SUM, inter, &requests[i]));
    }
    OK(MPI_Barrier(inter));
    OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK_INT(sum[i], sum_of(inter, 1, i));
    OK(MPI_Comm_free(&inter));
}

#define NEEDS_TWO(function)                                                                                            \
    static void function##_of_two(void)                                                                                \
    {                                                                                                                  \
        if (lt_size > 1)                                                                                               \
            function();                                                                                                \
    }
NEEDS_TWO(groups_and_messages)
NEEDS_TWO(merged_groups_are_in_order)
NEEDS_TWO(parts_of_both_groups)
NEEDS_TWO(attributes_hints_and_handlers)
NEEDS_TWO(collectives)
NEEDS_TWO(barriers_wait_for_the_other_group)
NEEDS_TWO(wrong_use_is_refused)
NEEDS_TWO(from_groups_of_sessions)
NEEDS_TWO(many_at_once)

LT_MAIN("inter", TEST(groups_and_messages_of_two), TEST(merged_groups_are_in_order_of_two),
        TEST(parts_of_both_groups_of_two), TEST(attributes_hints_and_handlers_of_two), TEST(collectives_of_two),
        TEST(barriers_wait_for_the_other_group_of_two), TEST(wrong_use_is_refused_of_two),
        TEST(leaders_that_fail_tell_their_group), TEST(from_groups_of_sessions_of_two), TEST(many_at_once_of_two))
