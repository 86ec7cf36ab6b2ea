/* Non-blocking and persistent collectives in large numbers: many at once, ranks that run ahead of others or compute,
 * other orders of waiting, and lengths on both sides of every limit. MPI-5 sections 6.12 and 6.13. */
#include "coll.h"

#include <unistd.h>

enum { MANY = 100, GO = 7 };

/* Sum over the ranks below `end` of what they have at `i` in operation `k`. */
static int total(int end, int k, int i)
{
    unsigned sum = 0;
    for (int r = 0; r < end; r++)
        sum += (unsigned)value(r, k, i);
    return (int)sum;
}

/* One of MANY operations, of a sort that goes by its number: an allreduce, a broadcast, a scan, a barrier, or an
 * allgather of n integers. */
struct one {
    int k, n, *out, *in;
};

static struct one make_one(int k)
{
    static const int lengths[] = {1, 14, 15, 300, 1024, 1025};
    struct one o = {.k = k, .n = lengths[k % 6]};
    o.out = buffer(0, o.n);
    o.in = buffer(0, (long)o.n * size);
    for (int i = 0; i < o.n; i++)
        o.out[i] = value(rank, k, i);
    if (k % 5 == 1 && rank == k % size)
        memcpy(o.in, o.out, sizeof(int) * (size_t)o.n);
    return o;
}

static void start_one(struct one *o, MPI_Request *q)
{
    switch (o->k % 5) {
    case 0: OK(MPI_Iallreduce(o->out, o->in, o->n, MPI_INT, MPI_SUM, comm, q)); break;
    case 1: OK(MPI_Ibcast(o->in, o->n, MPI_INT, o->k % size, comm, q)); break;
    case 2: OK(MPI_Iscan(o->out, o->in, o->n, MPI_INT, MPI_SUM, comm, q)); break;
    case 3: OK(MPI_Ibarrier(comm, q)); break;
    case 4: OK(MPI_Iallgather(o->out, o->n, MPI_INT, o->in, o->n, MPI_INT, comm, q)); break;
    }
}

static void check_one(struct one *o)
{
    lt_count_check();
    for (int i = 0; i < o->n; i++) {
        int expected[] = {total(size, o->k, i), value(o->k % size, o->k, i), total(rank + 1, o->k, i), GAP,
                          value(0, o->k, i)};
        if (!same(__FILE__, __LINE__, o->in, 0, i, expected[o->k % 5]))
            break;
    }
    for (int r = 1; o->k % 5 == 4 && r < size; r++)
        GOT_BLOCK(o->in, 0, (long)r * o->n, o->n, r, o->k);
    free(o->out);
    free(o->in);
}

static struct one ones[MANY];
static MPI_Request requests[MANY];

static void start_many(void)
{
    for (int k = 0; k < MANY; k++) {
        ones[k] = make_one(k);
        start_one(&ones[k], &requests[k]);
    }
}

static void check_many(void)
{
    for (int k = 0; k < MANY; k++) {
        CHECK(requests[k] == MPI_REQUEST_NULL);
        check_one(&ones[k]);
    }
}

static void many_are_waited_for_in_any_order(void)
{
    static const int strides[] = {1, 37, 99, 73};
    start_many();
    for (int k = 0; k < MANY; k++)
        OK(MPI_Wait(&requests[k * strides[rank % 4] % MANY], MPI_STATUS_IGNORE));
    check_many();
}

static void many_are_found_by_waitany_and_tests(void)
{
    int found, flag = 0, left = MANY, several[MANY];
    start_many();
    if (rank % 3 == 0) {
        for (int k = 0; k < MANY; k++) {
            OK(MPI_Waitany(MANY, requests, &found, MPI_STATUS_IGNORE));
            CHECK(found != MPI_UNDEFINED);
        }
        OK(MPI_Waitany(MANY, requests, &found, MPI_STATUS_IGNORE));
        CHECK_INT(found, MPI_UNDEFINED);
    } else if (rank % 3 == 1) {
        while (!flag)
            OK(MPI_Testall(MANY, requests, &flag, MPI_STATUSES_IGNORE));
    } else {
        while (left > 0) {
            OK(MPI_Waitsome(MANY, requests, &found, several, MPI_STATUSES_IGNORE));
            left -= found;
        }
    }
    check_many();
}

/* No rank waits for its operations before the last rank says so, in a message. */
static void a_rank_that_receives_holds_nobody_up(void)
{
    start_many();
    if (rank == size - 1) {
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        for (int r = 0; r < rank; r++)
            OK(MPI_Send(NULL, 0, MPI_INT, r, GO, comm));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_INT, size - 1, GO, comm, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    }
    check_many();
}

/* The same with ranks that are not in the library at all: they look for a file. */
static void a_rank_that_computes_holds_nobody_up(void)
{
    char path[400];
    agree_on_sign(path, sizeof path);
    start_many();
    if (rank == 0) {
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        FILE *file = fopen(path, "w");
        CHECK(file != NULL);
        fclose(file);
    } else {
        while (access(path, F_OK) != 0)
            usleep(100);
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    }
    check_many();
    OK(MPI_Barrier(comm));
    if (rank == 0)
        CHECK_INT(unlink(path), 0);
}

/* A root gets ahead of ranks that are late, as far as it is let. */
static void a_root_may_run_ahead(void)
{
    for (int root = 0; root < size; root++) {
        if (rank != root)
            usleep(2000);
        for (int k = 0; k < 5 * MANY; k++) {
            int v = rank == root ? value(root, k, 0) : GAP, got = GAP;
            MPI_Request q[2];
            OK(MPI_Ibcast(&v, 1, MPI_INT, root, comm, &q[0]));
            OK(MPI_Iscan(&k, &got, 1, MPI_INT, MPI_SUM, comm, &q[1]));
            OK(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
            CHECK_INT(v, value(root, k, 0));
            CHECK_INT(got, k * (rank + 1));
        }
    }
}

/* A persistent operation is started again and again, by a root that gets ahead. */
static void a_persistent_root_may_run_ahead(void)
{
    static int v[2000];
    MPI_Request q;
    for (int n = 1; n <= 2000; n += 1999) {
        OK(MPI_Bcast_init(v, n, MPI_INT, 0, comm, MPI_INFO_NULL, &q));
        if (rank != 0)
            usleep(2000);
        for (int k = 0; k < MANY; k++) {
            for (int i = 0; i < n; i++)
                v[i] = rank == 0 ? value(k, n, i) : GAP;
            OK(MPI_Start(&q));
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
            GOT_BLOCK(v, 0, 0, n, k, n);
        }
        OK(MPI_Request_free(&q));
    }
}

/* Large and small ones by turns, blocking ones in their midst, on a communicator that is freed before they are waited
 * for. */
static void sizes_alternate_on_a_freed_communicator(void)
{
    static const int lengths[] = {1, 20000, 3, 1000, 5000, 40000, 16384, 16385};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    MPI_Comm parent = comm;
    int *out[3 * LENGTHS], *in[3 * LENGTHS], one = 1, all;
    MPI_Request q[3 * LENGTHS];
    OK(MPI_Comm_dup(parent, &comm));
    for (int k = 0; k < 3 * LENGTHS; k++) {
        int n = lengths[k % LENGTHS];
        out[k] = buffer(0, n);
        in[k] = buffer(0, n);
        for (int i = 0; i < n; i++)
            out[k][i] = value(rank, k, i);
        OK(MPI_Iallreduce(out[k], in[k], n, MPI_INT, MPI_SUM, comm, &q[k]));
        if (k % 5 == 0) {
            OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm));
            CHECK_INT(all, size);
        }
    }
    OK(MPI_Comm_free(&comm));
    comm = parent;
    for (int k = 3 * LENGTHS - 1; k >= 0; k--) {
        OK(MPI_Wait(&q[k], MPI_STATUS_IGNORE));
        lt_count_check();
        for (int i = 0; i < lengths[k % LENGTHS]; i++)
            if (!same(__FILE__, __LINE__, in[k], 0, i, total(size, k, i)))
                break;
        free(out[k]);
        free(in[k]);
    }
}

/* The first rank waits for what is too long to be left in shared memory, last things first, while the others have not
 * even looked at what came before that: they receive. */
static void what_is_lent_comes_back_from_ranks_that_do_not_wait(void)
{
    enum { OPERATIONS = 12, LONG = 50000 };
    int *out[OPERATIONS], *in[OPERATIONS];
    MPI_Request q[OPERATIONS];
    for (int k = 0; k < OPERATIONS; k++) {
        int n = k % 3 == 0 ? 1 : LONG;
        out[k] = buffer(0, n);
        in[k] = buffer(0, (long)n * size);
        for (int i = 0; i < n; i++)
            out[k][i] = value(k % 3 == 1 ? 0 : rank, k, i);
        switch (k % 3) {
        case 0: OK(MPI_Iallreduce(out[k], in[k], n, MPI_INT, MPI_SUM, comm, &q[k])); break;
        case 1: OK(MPI_Ibcast(rank == 0 ? out[k] : in[k], n, MPI_INT, 0, comm, &q[k])); break;
        case 2: OK(MPI_Iallgather(out[k], n, MPI_INT, in[k], n, MPI_INT, comm, &q[k])); break;
        }
    }
    if (rank == 0) {
        for (int k = OPERATIONS - 1; k >= 0; k--) {
            int done = 0;
            while (k % 2 && !done)
                OK(MPI_Test(&q[k], &done, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&q[k], MPI_STATUS_IGNORE));
        }
        for (int r = 1; r < size; r++)
            OK(MPI_Send(NULL, 0, MPI_INT, r, GO, comm));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, GO, comm, MPI_STATUS_IGNORE));
    }
    OK(MPI_Waitall(OPERATIONS, q, MPI_STATUSES_IGNORE));
    for (int k = 0; k < OPERATIONS; k++) {
        if (k % 3 == 0)
            CHECK_INT(in[k][0], total(size, k, 0));
        else if (k % 3 == 1)
            GOT_BLOCK(rank == 0 ? out[k] : in[k], 0, 0, LONG, 0, k);
        for (int r = 0; k % 3 == 2 && r < size; r++)
            GOT_BLOCK(in[k], 0, (long)r * LONG, LONG, r, k);
        free(out[k]);
        free(in[k]);
    }
}

/* Elements of what `sender` has for `receiver` in an uneven exchange: none, few, and more than is left in shared
 * memory. */
static int uneven(int sender, int receiver, int turn)
{
    static const int lengths[] = {0, 1, 100, 2500, 20000};
    return lengths[(sender + 2 * receiver + turn) % 5];
}

static void uneven_parts_of_any_length(void)
{
    for (int turn = 0; turn < 5; turn++) {
        for (int shape = 0; shape < 2; shape++) {
            int *counts[2] = {lt_alloc(sizeof(int) * (size_t)size), lt_alloc(sizeof(int) * (size_t)size)};
            int *places[2] = {lt_alloc(sizeof(int) * (size_t)size), lt_alloc(sizeof(int) * (size_t)size)};
            int all[2] = {0, 0}, persistent = turn % 2;
            for (int r = 0; r < size; r++) {
                counts[0][r] = uneven(rank, r, turn);
                counts[1][r] = uneven(r, rank, turn);
                for (int side = 0; side < 2; side++) {
                    places[side][r] = all[side];
                    all[side] += counts[side][r];
                }
            }
            int *out = buffer(shape, all[0]), *in = buffer(0, all[1]);
            for (int r = 0; r < size; r++)
                for (int i = 0; i < counts[0][r]; i++)
                    put(out, shape, places[0][r] + i, value(rank, r, i));
            MPI_Request q;
            if (persistent) {
                OK(MPI_Alltoallv_init(out, counts[0], places[0], shapes[shape], in, counts[1], places[1], MPI_INT, comm,
                                      MPI_INFO_NULL, &q));
                OK(MPI_Start(&q));
                OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
                OK(MPI_Start(&q));
            } else {
                OK(MPI_Ialltoallv(out, counts[0], places[0], shapes[shape], in, counts[1], places[1], MPI_INT, comm,
                                  &q));
            }
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
            if (persistent)
                OK(MPI_Request_free(&q));
            for (int r = 0; r < size; r++)
                GOT_BLOCK(in, 0, places[1][r], counts[1][r], r, rank);
            /* The same lengths from all ranks to a root, and back. */
            for (int root = 0; root < size; root += 2) {
                int mine = uneven(rank, root, turn);
                if (rank == root) {
                    all[1] = 0;
                    for (int r = 0; r < size; r++) {
                        counts[1][r] = uneven(r, root, turn);
                        places[1][r] = all[1];
                        all[1] += counts[1][r];
                    }
                }
                int *part = buffer(shape, mine), *whole = buffer(0, rank == root ? all[1] : 0), *back = buffer(0, mine);
                for (int i = 0; i < mine; i++)
                    put(part, shape, i, value(rank, root, i));
                OK(MPI_Igatherv(part, mine, shapes[shape], whole, counts[1], places[1], MPI_INT, root, comm, &q));
                OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
                for (int r = 0; rank == root && r < size; r++)
                    GOT_BLOCK(whole, 0, places[1][r], counts[1][r], r, root);
                OK(MPI_Iscatterv(whole, counts[1], places[1], MPI_INT, back, mine, MPI_INT, root, comm, &q));
                OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
                GOT_BLOCK(back, 0, 0, mine, rank, root);
                free(part);
                free(whole);
                free(back);
            }
            free(out);
            free(in);
            for (int side = 0; side < 2; side++) {
                free(counts[side]);
                free(places[side]);
            }
        }
    }
}

/* In place and with gaps, for lengths on both sides of what fits a note, a slot, a large slot and none. */
static void in_place_and_with_gaps(void)
{
    static const int lengths[] = {0, 1, 2, 7, 15, 150, 1025, 2100, 9000, 30000};
    for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
        for (int shape = 0; shape < 2; shape++) {
            int n = lengths[c], root = (int)c % size;
            long all = (long)n * size;
            MPI_Datatype type = shapes[shape];
            MPI_Request q[5];
            int *each = buffer(shape, all), *gathered = buffer(shape, all), *sum = buffer(0, n),
                *rooted = buffer(shape, all);
            int *parts = buffer(0, all);
            for (int r = 0; r < size; r++)
                for (int i = 0; i < n; i++)
                    put(each, shape, (long)r * n + i, value(rank, r, i));
            for (int i = 0; i < n; i++) {
                put(gathered, shape, (long)rank * n + i, value(rank, 0, i));
                put(rooted, shape, (long)rank * n + i, value(rank, 0, i));
                sum[i] = value(rank, 0, i);
            }
            for (long i = 0; i < all; i++)
                parts[i] = value(rank, 0, (int)i);
            OK(MPI_Ialltoall(MPI_IN_PLACE, n, type, each, n, type, comm, &q[0]));
            OK(MPI_Iallgather(MPI_IN_PLACE, n, type, gathered, n, type, comm, &q[1]));
            OK(MPI_Iallreduce(MPI_IN_PLACE, sum, n, MPI_INT, MPI_SUM, comm, &q[2]));
            if (rank == root)
                OK(MPI_Igather(MPI_IN_PLACE, n, type, rooted, n, type, root, comm, &q[3]));
            else
                OK(MPI_Igather(rooted + (((long)rank * n) << shape), n, type, NULL, n, type, root, comm, &q[3]));
            OK(MPI_Ireduce_scatter_block(MPI_IN_PLACE, parts, n, MPI_INT, MPI_SUM, comm, &q[4]));
            OK(MPI_Waitall(5, q, MPI_STATUSES_IGNORE));
            for (int r = 0; r < size; r++) {
                GOT_BLOCK(each, shape, (long)r * n, n, r, rank);
                GOT_BLOCK(gathered, shape, (long)r * n, n, r, 0);
                if (rank == root)
                    GOT_BLOCK(rooted, shape, (long)r * n, n, r, 0);
            }
            lt_count_check();
            for (int i = 0; i < n; i++)
                if (!same(__FILE__, __LINE__, sum, 0, i, total(size, 0, i)) ||
                    !same(__FILE__, __LINE__, parts, 0, i, total(size, 0, rank * n + i)))
                    break;
            free(each);
            free(gathered);
            free(rooted);
            free(sum);
            free(parts);
        }
    }
}

/* Ranks that disagree about lengths are told so, and the communicator works afterwards. */
static void disagreement_is_reported(void)
{
    if (size == 1)
        return;
    if (!lt_one_host())
        return; /* By messages ranks that disagree may choose different algorithms, and then wait: the hang report names
                   them. */
    MPI_Comm mine;
    OK(MPI_Comm_dup(comm, &mine));
    OK(MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN));
    for (int n = 1; n <= 100; n += 99) {
        int in[200], out[200] = {0}, one = 1, all = 0;
        MPI_Request q;
        OK(MPI_Iallreduce(out, in, rank == 0 ? 2 * n : n, MPI_INT, MPI_SUM, mine, &q));
        CHECK(MPI_Wait(&q, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        CHECK(q == MPI_REQUEST_NULL);
        OK(MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, mine, &q));
        OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        CHECK_INT(all, size);
    }
    OK(MPI_Comm_free(&mine));
}

#define ON_ALL(name)                                                                                                   \
    static void name##_on_all(void)                                                                                    \
    {                                                                                                                  \
        on_all(name);                                                                                                  \
    }
ON_ALL(many_are_waited_for_in_any_order)
ON_ALL(many_are_found_by_waitany_and_tests)
ON_ALL(a_rank_that_receives_holds_nobody_up)
ON_ALL(a_rank_that_computes_holds_nobody_up)
ON_ALL(a_root_may_run_ahead)
ON_ALL(a_persistent_root_may_run_ahead)
ON_ALL(sizes_alternate_on_a_freed_communicator)
ON_ALL(what_is_lent_comes_back_from_ranks_that_do_not_wait)
ON_ALL(uneven_parts_of_any_length)
ON_ALL(in_place_and_with_gaps)
ON_ALL(disagreement_is_reported)

LT_MAIN("coll_ahead", TEST(make_shapes), TEST(many_are_waited_for_in_any_order_on_all),
        TEST(many_are_found_by_waitany_and_tests_on_all), TEST(a_rank_that_receives_holds_nobody_up_on_all),
        TEST(a_rank_that_computes_holds_nobody_up_on_all), TEST(a_root_may_run_ahead_on_all),
        TEST(a_persistent_root_may_run_ahead_on_all), TEST(sizes_alternate_on_a_freed_communicator_on_all),
        TEST(what_is_lent_comes_back_from_ranks_that_do_not_wait_on_all), TEST(uneven_parts_of_any_length_on_all),
        TEST(in_place_and_with_gaps_on_all), TEST(disagreement_is_reported_on_all), TEST(free_shapes))
