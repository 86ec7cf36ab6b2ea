/* Random blocking collectives with every value verified.  usage: coll_stress [seconds [seed [threads]]]
 *
 * Each thread of a rank works with its namesakes of the other ranks on communicators of their own: a duplicate, one
 * with the ranks reversed, and two halves. All draw from the same generator which operation comes next, on which
 * communicator, how long, from which root; shapes of buffers, delays and messages beside the collective each rank draws
 * for itself. Lengths are 0 to 2 MB in all. From time to time the communicators are freed and made anew. A failure
 * repeats with the printed seed, as far as time plays no part.
 */
#include "limosa_test.h"

#include <pthread.h>
#include <unistd.h>

enum { COMMS = 3, MOST_THREADS = 4, MOST_INTS = 1 << 19, GAP = -777777777 };
enum {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    KINDS
};

typedef struct {
    int number;
    uint64_t common, own; /* generators */
    MPI_Comm base, comms[COMMS];
    MPI_Comm comm; /* of the operation, and its size, this rank there, its seed */
    int size, rank;
    uint64_t seed;
    long operations;
} worker;

/* A buffer of ints; with `stride` 2 a gap behind each. Whatever is no data must stay GAP. */
typedef struct {
    int *at;
    int n, stride;
    MPI_Datatype type;
} buffer;

static double seconds = 5, deadline;
static uint64_t first_seed;
static MPI_Datatype strided, pair;
static MPI_Op compose;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static unsigned draw(uint64_t *state, unsigned below)
{
    *state = mix(*state);
    return (unsigned)(*state >> 32) % below;
}

/* Value i of what `from` has for `to`. */
static int value(const worker *w, int from, int to, int i)
{
    return (int)mix(w->seed ^ ((uint64_t)from << 48 | (uint64_t)to << 32 | (unsigned)i));
}

static buffer make(worker *w, int n)
{
    buffer b = {.n = n, .stride = 1 + (draw(&w->own, 4) == 0)};
    b.type = b.stride == 2 ? strided : MPI_INT;
    b.at = lt_alloc(sizeof(int) * ((size_t)n * (size_t)b.stride + 1));
    for (int i = 0; i < n * b.stride + 1; i++)
        b.at[i] = GAP;
    return b;
}

static buffer make_plain(int n)
{
    buffer b = {.n = n, .stride = 1, .type = MPI_INT, .at = lt_alloc(sizeof(int) * ((size_t)n + 1))};
    for (int i = 0; i <= n; i++)
        b.at[i] = GAP;
    return b;
}

static void fill(const worker *w, buffer *b, int start, int n, int from, int to)
{
    for (int i = 0; i < n; i++)
        b->at[(start + i) * b->stride] = value(w, from, to, i);
}

static int wrong(const worker *w, const char *what, int i, int got, int expected)
{
    lt_fail(__FILE__, __LINE__,
            "%s, operation %ld of thread %d, seed %llu, rank %d of %d there: element %d: expected %d, got %d", what,
            w->operations, w->number, (unsigned long long)first_seed, w->rank, w->size, i, expected, got);
    return 0;
}

static int holds(const worker *w, const char *what, const buffer *b, int start, int n, int from, int to)
{
    lt_count_check();
    for (int i = 0; i < n; i++) {
        int got = b->at[(start + i) * b->stride];
        if (got != value(w, from, to, i))
            return wrong(w, what, i, got, value(w, from, to, i));
    }
    return 1;
}

/* No byte beside the data has changed. */
static void gaps_hold(const worker *w, const char *what, const buffer *b)
{
    if (b->stride == 2)
        for (int i = 0; i < b->n; i++)
            if (b->at[2 * i + 1] != GAP && !wrong(w, what, i, b->at[2 * i + 1], GAP))
                return;
    if (b->at[b->n * b->stride] != GAP)
        wrong(w, what, b->n, b->at[b->n * b->stride], GAP);
}

/* Combines the pairs of ranks [first, last]: x -> a x + b, in turn, which does not commute. */
static void composed(const worker *w, int first, int last, int i, unsigned result[2])
{
    result[0] = 1, result[1] = 0;
    for (int r = first; r <= last; r++) {
        unsigned a = (unsigned)value(w, r, 0, 2 * i), b = (unsigned)value(w, r, 0, 2 * i + 1);
        result[1] = result[0] * b + result[1];
        result[0] *= a;
    }
}

static void compose_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    unsigned *f = in, *g = inout;
    for (int i = 0; i < *n; i++) {
        g[2 * i + 1] = f[2 * i] * g[2 * i + 1] + f[2 * i + 1];
        g[2 * i] *= f[2 * i];
    }
}

/* Ints [start, start + n) of the result that combines the ranks [0, last]. */
static void reduced(const worker *w, const char *what, const buffer *b, int pairs, int start, int n, int last)
{
    lt_count_check();
    for (int i = 0; i < n; i++) {
        unsigned expected[2] = {0, 0};
        if (pairs) {
            composed(w, 0, last, (start + i) / 2, expected);
            expected[0] = expected[(start + i) % 2];
        } else {
            for (int r = 0; r <= last; r++)
                expected[0] += (unsigned)value(w, r, 0, start + i);
        }
        if (b->at[i] != (int)expected[0]) {
            wrong(w, what, i, b->at[i], (int)expected[0]);
            return;
        }
    }
}

/* Mostly some ints, sometimes thousands, seldom as many as `most`; often at or beside a power of two. */
static int draw_ints(worker *w, int most)
{
    static const int limits[] = {1, 2, 14, 16, 16, 200, 2048, 2048, 5000, 40000, MOST_INTS};
    int limit = limits[draw(&w->common, sizeof limits / sizeof *limits)];
    limit = limit == MOST_INTS && draw(&w->common, 3) ? 300 : limit;
    int n = (int)draw(&w->common, (unsigned)(limit < most ? limit : most) + 1);
    if (draw(&w->common, 3) == 0 && n > 2)
        n = (1 << (31 - __builtin_clz((unsigned)n))) + (int)draw(&w->common, 3) - 1;
    return n < most ? n : most;
}

static void movement(worker *w, int kind, int root, int n)
{
    int size = w->size, me = w->rank, in_place = draw(&w->common, 4) == 0;
    int uneven = kind == GATHERV || kind == SCATTERV || kind == ALLGATHERV || kind == ALLTOALLV;
    int *counts = lt_alloc(sizeof(int) * (size_t)size), *displs = lt_alloc(sizeof(int) * (size_t)size), all = 0;
    int *send_counts = lt_alloc(sizeof(int) * (size_t)size), *send_displs = lt_alloc(sizeof(int) * (size_t)size),
        send_all = 0;
    for (int r = 0; r < size; r++) {
        /* What pairs of ranks have for each other is as long both ways, so that it can be in place. */
        int low = r < me ? r : me, high = r < me ? me : r;
        uint64_t state = w->seed + (kind == ALLTOALLV ? (uint64_t)(low * size + high) : (uint64_t)r);
        counts[r] = send_counts[r] = uneven ? (int)draw(&state, (unsigned)n + 1) : n;
        displs[r] = all, send_displs[r] = send_all;
        all += counts[r], send_all += send_counts[r];
    }
    if (kind == BCAST) {
        buffer b = make(w, n);
        if (me == root)
            fill(w, &b, 0, n, root, 0);
        OK(MPI_Bcast(b.at, n, b.type, root, w->comm));
        holds(w, "bcast", &b, 0, n, root, 0);
        gaps_hold(w, "bcast", &b);
        free(b.at);
    } else if (kind == GATHER || kind == GATHERV || kind == ALLGATHER || kind == ALLGATHERV) {
        int to_all = kind == ALLGATHER || kind == ALLGATHERV, here = in_place && (to_all || me == root);
        buffer out = make(w, counts[me]), in = make(w, to_all || me == root ? all : 0);
        fill(w, &out, 0, counts[me], me, 0);
        if (here)
            fill(w, &in, displs[me], counts[me], me, 0);
        void *from = here ? MPI_IN_PLACE : out.at;
        if (kind == GATHER)
            OK(MPI_Gather(from, n, out.type, in.at, n, in.type, root, w->comm));
        else if (kind == GATHERV)
            OK(MPI_Gatherv(from, counts[me], out.type, in.at, counts, displs, in.type, root, w->comm));
        else if (kind == ALLGATHER)
            OK(MPI_Allgather(from, n, out.type, in.at, n, in.type, w->comm));
        else
            OK(MPI_Allgatherv(from, counts[me], out.type, in.at, counts, displs, in.type, w->comm));
        for (int r = 0; r < size && in.n; r++)
            if (!holds(w, to_all ? "allgather" : "gather", &in, displs[r], counts[r], r, 0))
                break;
        gaps_hold(w, "gather", &in);
        free(out.at), free(in.at);
    } else if (kind == SCATTER || kind == SCATTERV) {
        buffer out = make(w, me == root ? all : 0), in = make(w, counts[me]);
        for (int r = 0; r < size && me == root; r++)
            fill(w, &out, displs[r], counts[r], root, r);
        void *to = in_place && me == root ? MPI_IN_PLACE : in.at;
        if (kind == SCATTER)
            OK(MPI_Scatter(out.at, n, out.type, to, n, in.type, root, w->comm));
        else
            OK(MPI_Scatterv(out.at, counts, displs, out.type, to, counts[me], in.type, root, w->comm));
        if (to == in.at)
            holds(w, "scatter", &in, 0, counts[me], root, me);
        gaps_hold(w, "scatter", &in);
        free(out.at), free(in.at);
    } else {
        buffer out = make(w, send_all), in = make(w, all);
        for (int r = 0; r < size; r++) {
            fill(w, &out, send_displs[r], send_counts[r], me, r);
            if (in_place)
                fill(w, &in, displs[r], counts[r], me, r);
        }
        void *from = in_place ? MPI_IN_PLACE : out.at;
        if (kind == ALLTOALL)
            OK(MPI_Alltoall(from, n, out.type, in.at, n, in.type, w->comm));
        else
            OK(MPI_Alltoallv(from, send_counts, send_displs, out.type, in.at, counts, displs, in.type, w->comm));
        for (int r = 0; r < size; r++)
            if (!holds(w, "alltoall", &in, displs[r], counts[r], r, me))
                break;
        gaps_hold(w, "alltoall", &in);
        free(out.at), free(in.at);
    }
    free(counts), free(displs), free(send_counts), free(send_displs);
}

static void reduction(worker *w, int kind, int root, int n)
{
    int size = w->size, me = w->rank, pairs = draw(&w->common, 3) == 0, in_place = draw(&w->common, 3) == 0;
    int width = 1 + pairs, elements = n / width, ints = elements * width;
    MPI_Datatype type = pairs ? pair : MPI_INT;
    MPI_Op op = pairs ? compose : MPI_SUM;
    buffer out = make_plain(ints), in = make_plain(ints);
    fill(w, &out, 0, ints, me, 0);
    int has_result = kind != REDUCE || me == root, here = in_place && has_result;
    if (here)
        fill(w, &in, 0, ints, me, 0);
    void *from = here ? MPI_IN_PLACE : out.at;
    if (kind == REDUCE) {
        OK(MPI_Reduce(from, in.at, elements, type, op, root, w->comm));
        if (has_result)
            reduced(w, "reduce", &in, pairs, 0, ints, size - 1);
    } else if (kind == ALLREDUCE) {
        OK(MPI_Allreduce(from, in.at, elements, type, op, w->comm));
        reduced(w, "allreduce", &in, pairs, 0, ints, size - 1);
    } else if (kind == SCAN) {
        OK(MPI_Scan(from, in.at, elements, type, op, w->comm));
        reduced(w, "scan", &in, pairs, 0, ints, me);
    } else if (kind == EXSCAN) {
        OK(MPI_Exscan(from, in.at, elements, type, op, w->comm));
        if (me > 0)
            reduced(w, "exscan", &in, pairs, 0, ints, me - 1);
    } else {
        int *counts = lt_alloc(sizeof(int) * (size_t)size), left = elements, start = 0;
        for (int r = 0; r < size; r++) {
            uint64_t state = w->seed + (uint64_t)r;
            counts[r] = kind == REDUCE_SCATTER_BLOCK ? elements / size
                        : r == size - 1              ? left
                                                     : (int)draw(&state, (unsigned)left + 1);
            left -= counts[r];
        }
        for (int r = 0; r < me; r++)
            start += counts[r] * width;
        if (kind == REDUCE_SCATTER)
            OK(MPI_Reduce_scatter(from, in.at, counts, type, op, w->comm));
        else
            OK(MPI_Reduce_scatter_block(from, in.at, counts[0], type, op, w->comm));
        reduced(w, "reduce_scatter", &in, pairs, start, counts[me] * width, size - 1);
        free(counts);
    }
    gaps_hold(w, "reduction", &in);
    free(out.at), free(in.at);
}

static void make_comms(worker *w)
{
    int rank, size;
    MPI_Comm_rank(w->base, &rank);
    MPI_Comm_size(w->base, &size);
    OK(MPI_Comm_dup(w->base, &w->comms[0]));
    OK(MPI_Comm_split(w->base, 0, size - rank, &w->comms[1]));
    OK(MPI_Comm_split(w->base, rank % 2, rank, &w->comms[2]));
}

static void free_comms(worker *w)
{
    for (int c = 0; c < COMMS; c++)
        OK(MPI_Comm_free(&w->comms[c]));
}

static void *work(void *argument)
{
    worker *w = argument;
    int go_on = 1, here, all;
    MPI_Comm_rank(w->base, &here);
    MPI_Comm_size(w->base, &all);
    make_comms(w);
    while (go_on) {
        w->operations++;
        w->comm = w->comms[draw(&w->common, COMMS)];
        w->seed = mix(w->common);
        MPI_Comm_rank(w->comm, &w->rank);
        MPI_Comm_size(w->comm, &w->size);
        /* The halves may differ in size: what all draw must not depend on it. */
        int kind = (int)draw(&w->common, KINDS), root = (int)draw(&w->common, 1u << 20) % w->size;
        int whole = kind == BCAST || kind >= REDUCE, n = draw_ints(w, whole ? MOST_INTS : MOST_INTS / all);
        unsigned char out[3000], in[3000];
        MPI_Request requests[2];
        int beside = draw(&w->common, 4) == 0, length = beside ? (int)draw(&w->common, sizeof in) : 0;
        if (beside) {
            lt_fill(out, (size_t)length, w->seed + (uint64_t)here);
            OK(MPI_Irecv(in, length, MPI_BYTE, (here + all - 1) % all, 1, w->base, &requests[0]));
            OK(MPI_Isend(out, length, MPI_BYTE, (here + 1) % all, 1, w->base, &requests[1]));
        }
        if (draw(&w->own, 150) == 0)
            usleep(draw(&w->own, 3000));
        if (kind == BARRIER)
            OK(MPI_Barrier(w->comm));
        else if (kind < REDUCE)
            movement(w, kind, root, n);
        else
            reduction(w, kind, root, n);
        if (beside) {
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            CHECK_FILLED(in, (size_t)length, w->seed + (uint64_t)((here + all - 1) % all));
        }
        if (w->operations % 500 == 0) {
            free_comms(w);
            make_comms(w);
        }
        if (w->operations % 20 == 0) {
            go_on = MPI_Wtime() < deadline && lt_failures == 0;
            OK(MPI_Bcast(&go_on, 1, MPI_INT, 0, w->comms[0]));
        }
    }
    free_comms(w);
    return NULL;
}

static int threads = 1;

static void traffic(void)
{
    static worker workers[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Op_create(compose_pairs, 0, &compose));
    OK(MPI_Bcast(&first_seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    deadline = MPI_Wtime() + seconds;
    for (int t = 0; t < threads; t++) {
        workers[t] = (worker){.number = t,
                              .common = mix(first_seed + (uint64_t)t),
                              .own = mix(first_seed + 1000u * (uint64_t)lt_rank + (uint64_t)t)};
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].base));
    }
    for (int t = 1; t < threads; t++)
        pthread_create(&ids[t], NULL, work, &workers[t]);
    work(&workers[0]);
    long operations = workers[0].operations;
    for (int t = 1; t < threads; t++) {
        pthread_join(ids[t], NULL);
        operations += workers[t].operations;
    }
    for (int t = 0; t < threads; t++)
        OK(MPI_Comm_free(&workers[t].base));
    OK(MPI_Op_free(&compose));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&strided));
    if (lt_rank == 0)
        printf("seed %llu: %ld operations\n", (unsigned long long)first_seed, operations);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(traffic)};
    int provided;
    seconds = argc > 1 ? atof(argv[1]) : seconds;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)getpid() * 7919u;
    threads = argc > 3 ? atoi(argv[3]) : 1;
    if (threads < 1 || threads > MOST_THREADS ||
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return 98;
    long failures = lt_run("coll_stress", tests, 1);
    MPI_Finalize();
    return failures != 0;
}
