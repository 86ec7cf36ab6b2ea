/* Non-blocking and persistent collectives, and collectives whose ranks disagree: MPI-5 sections 6.12 to 6.14. */
#include "coll.h"

#include <unistd.h>

enum { N = 3000, KINDS = 17 };

/* Buffers of one operation of each kind. */
struct work {
    int n, root;
    int *out, *in;
    int *counts, *displs, *zeros;
    MPI_Datatype *types;
};

static struct work make_work(int n, int root)
{
    struct work w = {.n = n, .root = root};
    w.out = buffer(0, (long)n * size);
    w.in = buffer(0, (long)n * size);
    w.counts = lt_alloc(sizeof(int) * (size_t)size);
    w.displs = lt_alloc(sizeof(int) * (size_t)size);
    w.zeros = lt_alloc(sizeof(int) * (size_t)size);
    w.types = lt_alloc(sizeof(MPI_Datatype) * (size_t)size);
    for (int r = 0; r < size; r++) {
        w.counts[r] = n;
        w.displs[r] = n * r;
        w.zeros[r] = n * r * (int)sizeof(int);
        w.types[r] = MPI_INT;
    }
    return w;
}

static void free_work(struct work *w)
{
    free(w->out);
    free(w->in);
    free(w->counts);
    free(w->displs);
    free(w->zeros);
    free(w->types);
}

static void fill_work(struct work *w, int kind, int turn)
{
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < w->n; i++) {
            w->out[r * w->n + i] = value(rank, r, i) + turn;
            w->in[r * w->n + i] = GAP;
        }
    }
    if (kind == 1 && rank == w->root)
        memcpy(w->in, w->out, sizeof(int) * (size_t)w->n);
}

static void begin(struct work *w, int kind, MPI_Request *q)
{
    int n = w->n, root = w->root;
    switch (kind) {
    case 0: OK(MPI_Ibarrier(comm, q)); break;
    case 1: OK(MPI_Ibcast(w->in, n, MPI_INT, root, comm, q)); break;
    case 2: OK(MPI_Igather(w->out, n, MPI_INT, w->in, n, MPI_INT, root, comm, q)); break;
    case 3: OK(MPI_Igatherv(w->out, n, MPI_INT, w->in, w->counts, w->displs, MPI_INT, root, comm, q)); break;
    case 4: OK(MPI_Iscatter(w->out, n, MPI_INT, w->in, n, MPI_INT, root, comm, q)); break;
    case 5: OK(MPI_Iscatterv(w->out, w->counts, w->displs, MPI_INT, w->in, n, MPI_INT, root, comm, q)); break;
    case 6: OK(MPI_Iallgather(w->out, n, MPI_INT, w->in, n, MPI_INT, comm, q)); break;
    case 7: OK(MPI_Iallgatherv(w->out, n, MPI_INT, w->in, w->counts, w->displs, MPI_INT, comm, q)); break;
    case 8: OK(MPI_Ialltoall(w->out, n, MPI_INT, w->in, n, MPI_INT, comm, q)); break;
    case 9:
        OK(MPI_Ialltoallv(w->out, w->counts, w->displs, MPI_INT, w->in, w->counts, w->displs, MPI_INT, comm, q));
        break;
    case 10:
        OK(MPI_Ialltoallw(w->out, w->counts, w->zeros, w->types, w->in, w->counts, w->zeros, w->types, comm, q));
        break;
    case 11: OK(MPI_Ireduce(w->out, w->in, n, MPI_INT, MPI_SUM, root, comm, q)); break;
    case 12: OK(MPI_Iallreduce(w->out, w->in, n, MPI_INT, MPI_SUM, comm, q)); break;
    case 13: OK(MPI_Ireduce_scatter(w->out, w->in, w->counts, MPI_INT, MPI_SUM, comm, q)); break;
    case 14: OK(MPI_Ireduce_scatter_block(w->out, w->in, n, MPI_INT, MPI_SUM, comm, q)); break;
    case 15: OK(MPI_Iscan(w->out, w->in, n, MPI_INT, MPI_SUM, comm, q)); break;
    case 16: OK(MPI_Iexscan(w->out, w->in, n, MPI_INT, MPI_SUM, comm, q)); break;
    }
}

static void init(struct work *w, int kind, MPI_Request *q)
{
    int n = w->n, root = w->root;
    MPI_Info i = MPI_INFO_NULL;
    switch (kind) {
    case 0: OK(MPI_Barrier_init(comm, i, q)); break;
    case 1: OK(MPI_Bcast_init(w->in, n, MPI_INT, root, comm, i, q)); break;
    case 2: OK(MPI_Gather_init(w->out, n, MPI_INT, w->in, n, MPI_INT, root, comm, i, q)); break;
    case 3: OK(MPI_Gatherv_init(w->out, n, MPI_INT, w->in, w->counts, w->displs, MPI_INT, root, comm, i, q)); break;
    case 4: OK(MPI_Scatter_init(w->out, n, MPI_INT, w->in, n, MPI_INT, root, comm, i, q)); break;
    case 5: OK(MPI_Scatterv_init(w->out, w->counts, w->displs, MPI_INT, w->in, n, MPI_INT, root, comm, i, q)); break;
    case 6: OK(MPI_Allgather_init(w->out, n, MPI_INT, w->in, n, MPI_INT, comm, i, q)); break;
    case 7: OK(MPI_Allgatherv_init(w->out, n, MPI_INT, w->in, w->counts, w->displs, MPI_INT, comm, i, q)); break;
    case 8: OK(MPI_Alltoall_init(w->out, n, MPI_INT, w->in, n, MPI_INT, comm, i, q)); break;
    case 9:
        OK(MPI_Alltoallv_init(w->out, w->counts, w->displs, MPI_INT, w->in, w->counts, w->displs, MPI_INT, comm, i, q));
        break;
    case 10:
        OK(MPI_Alltoallw_init(w->out, w->counts, w->zeros, w->types, w->in, w->counts, w->zeros, w->types, comm, i, q));
        break;
    case 11: OK(MPI_Reduce_init(w->out, w->in, n, MPI_INT, MPI_SUM, root, comm, i, q)); break;
    case 12: OK(MPI_Allreduce_init(w->out, w->in, n, MPI_INT, MPI_SUM, comm, i, q)); break;
    case 13: OK(MPI_Reduce_scatter_init(w->out, w->in, w->counts, MPI_INT, MPI_SUM, comm, i, q)); break;
    case 14: OK(MPI_Reduce_scatter_block_init(w->out, w->in, n, MPI_INT, MPI_SUM, comm, i, q)); break;
    case 15: OK(MPI_Scan_init(w->out, w->in, n, MPI_INT, MPI_SUM, comm, i, q)); break;
    case 16: OK(MPI_Exscan_init(w->out, w->in, n, MPI_INT, MPI_SUM, comm, i, q)); break;
    }
}

/* The sum of what the ranks `first` to `last - 1` have for `receiver`. */
static int sum(int first, int last, int receiver, int i, int turn)
{
    unsigned total = 0;
    for (int r = first; r < last; r++)
        total += (unsigned)value(r, receiver, i) + (unsigned)turn;
    return (int)total;
}

static void check_work(struct work *w, int kind, int turn)
{
    int n = w->n, at_root = rank == w->root;
    for (int i = 0; i < n; i++) {
        int first = w->in[i];
        switch (kind) {
        case 0: CHECK_INT(first, GAP); break;
        case 1: CHECK_INT(first, value(w->root, 0, i) + turn); break;
        case 4:
        case 5: CHECK_INT(first, value(w->root, rank, i) + turn); break;
        case 11: CHECK_INT(first, at_root ? sum(0, size, 0, i, turn) : GAP); break;
        case 12: CHECK_INT(first, sum(0, size, 0, i, turn)); break;
        case 13:
        case 14: CHECK_INT(first, sum(0, size, rank, i, turn)); break;
        case 15: CHECK_INT(first, sum(0, rank + 1, 0, i, turn)); break;
        case 16: CHECK_INT(first, rank ? sum(0, rank, 0, i, turn) : GAP); break;
        default:
            for (int r = 0; r < size; r++) {
                int got = w->in[r * n + i];
                if (kind <= 3)
                    CHECK_INT(got, at_root ? value(r, 0, i) + turn : GAP);
                else
                    CHECK_INT(got, value(r, kind >= 8 ? rank : 0, i) + turn);
            }
        }
    }
}

/* One of each kind at once, and a blocking one in their midst; rank by rank they are waited for in another order. */
static void all_kinds_at_once(void)
{
    for (int c = 0; c < 3; c++) {
        struct work work[KINDS];
        MPI_Request requests[KINDS];
        for (int kind = 0; kind < KINDS; kind++) {
            work[kind] = make_work((const int[]){1, 50, N}[c], (kind + c) % size);
            fill_work(&work[kind], kind, c);
            begin(&work[kind], kind, &requests[kind]);
            if (kind == 8)
                OK(MPI_Barrier(comm));
        }
        for (int k = 0; k < KINDS; k++) {
            int kind = (k * (rank + 1) + c) % KINDS, done = 0;
            if (k % 2) {
                OK(MPI_Wait(&requests[kind], MPI_STATUS_IGNORE));
            } else {
                while (!done)
                    OK(MPI_Test(&requests[kind], &done, MPI_STATUS_IGNORE));
            }
            CHECK(requests[kind] == MPI_REQUEST_NULL);
            check_work(&work[kind], kind, c);
        }
        for (int kind = 0; kind < KINDS; kind++)
            free_work(&work[kind]);
    }
}

/* Persistent ones are made in one order and started, several times, in an order that differs from rank to rank. */
static void persistent_ones_start_in_any_order(void)
{
    struct work work[KINDS];
    MPI_Request requests[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        work[kind] = make_work(kind % 2 ? 10 : N, kind % size);
        init(&work[kind], kind, &requests[kind]);
    }
    for (int turn = 0; turn < 4; turn++) {
        for (int k = 0; k < KINDS; k++) {
            int kind = (k * (rank + 1) + turn) % KINDS;
            fill_work(&work[kind], kind, turn);
            OK(MPI_Start(&requests[kind]));
        }
        OK(MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE));
        for (int kind = 0; kind < KINDS; kind++)
            check_work(&work[kind], kind, turn);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        OK(MPI_Request_free(&requests[kind]));
        free_work(&work[kind]);
    }
}

/* Ranks that compute do not hold up a collective that they have begun: rank 0 says by a file that its barrier is
 * complete, and the others do not call MPI before they see it. */
static void a_computing_rank_delays_nobody(void)
{
    char path[400];
    agree_on_sign(path, sizeof path);
    MPI_Request request;
    OK(MPI_Ibarrier(comm, &request));
    if (rank == 0) {
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        FILE *file = fopen(path, "w");
        CHECK(file != NULL);
        fclose(file);
    } else {
        while (access(path, F_OK) != 0)
            usleep(100);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(comm));
    if (rank == 0)
        CHECK_INT(unlink(path), 0);
}

/* The root's direct partner is told that their lengths differ; whether ranks further away notice depends on the
 * algorithm. */
static void told(int error_class, int code)
{
    if (rank <= 1)
        CHECK_INT(lt_class(code), rank == 0 ? MPI_SUCCESS : error_class);
}

/* Ranks that disagree about the length are told so, and the communicator works afterwards. */
static void disagreement_is_reported(void)
{
    if (size == 1)
        return;
    MPI_Comm mine;
    OK(MPI_Comm_dup(comm, &mine));
    OK(MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN));
    int *b = buffer(0, 2 * N);
    for (int n = 10; n <= N; n *= 10) {
        int more = rank == 0 ? 2 * n : n, less = rank == 0 ? n : 2 * n, one = 1, all = 0;
        MPI_Request request;
        told(MPI_ERR_TRUNCATE, MPI_Bcast(b, more, MPI_INT, 0, mine));
        told(MPI_ERR_COUNT, MPI_Bcast(b, less, MPI_INT, 0, mine));
        OK(MPI_Ibcast(b, more, MPI_INT, 0, mine, &request));
        told(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, mine));
        CHECK_INT(all, size);
    }
    free(b);
    OK(MPI_Comm_free(&mine));
}

#define ON_ALL(name)                                                                                                   \
    static void name##_on_all(void)                                                                                    \
    {                                                                                                                  \
        on_all(name);                                                                                                  \
    }
ON_ALL(all_kinds_at_once)
ON_ALL(persistent_ones_start_in_any_order)
ON_ALL(a_computing_rank_delays_nobody)
ON_ALL(disagreement_is_reported)

LT_MAIN("coll_background", TEST(make_shapes), TEST(all_kinds_at_once_on_all),
        TEST(persistent_ones_start_in_any_order_on_all), TEST(a_computing_rank_delays_nobody_on_all),
        TEST(disagreement_is_reported_on_all), TEST(free_shapes))
