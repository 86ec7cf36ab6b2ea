/* lab: ranks=2 */
/* Threads under MPI_THREAD_MULTIPLE: one and two threads per rank, each pair of threads on a communicator of its
 * own.
 *   threads_pingpong  half the round trip of each pair while all are at work
 *   threads_rate      messages of all pairs together, window of 64 as in rate.c
 *   threads_waiting   half the round trip of one pair while the second thread of each rank waits; x.call says in which
 *                     call
 * x.level is the thread level: what threads cost is seen beside threads_single.c, the same with one thread under
 * MPI_THREAD_SINGLE. Only the hot form. Verified: all bytes of every message of every thread. */
#include "lab.h"
#include <pthread.h>

#ifndef LEVEL
#define LEVEL MPI_THREAD_MULTIPLE
#define LEVEL_NAME "multiple"
#define THREADS 2
#endif

enum { WINDOW = 64 };

LAB_SIZES(pingpong_sizes, (8, 1 << 10, 64 << 10, 1 << 20), (8, 64 << 10))
LAB_SIZES(rate_sizes, (8, 1 << 10, 16 << 10), (8, 1 << 10))

enum call { RECV, PROBE, BARRIER, CALLS };

static const char *const names[CALLS] = {"MPI_Recv", "MPI_Probe", "MPI_Barrier"};

struct crew {
    int threads;
    size_t region; /* bytes of a slot that belong to one thread */
    MPI_Comm comms[THREADS];
    pthread_barrier_t go, done;
    /* What the threads are to do; written while they wait for `go`. */
    struct lab_case *c;
    long operations; /* 0: end */
    void (*work)(struct lab_case *, int thread, long operations);
    /* In which call the second thread waits, and for each rank where it does so. */
    enum call call;
    MPI_Comm waits[2];
};

struct member {
    struct crew *crew;
    int thread;
};

static char *part(struct lab_case *c, char *slot, int thread)
{
    const struct crew *crew = c->more;
    return slot + (size_t)thread * crew->region;
}

static void pingpong(struct lab_case *c, int thread, long operations)
{
    const struct crew *crew = c->more;
    int bytes = (int)c->bytes;
    MPI_Comm comm = crew->comms[thread];
    for (long i = 0; i < operations; i++) {
        size_t slot = (size_t)i & (c->pool.slots - 1);
        char *out = part(c, lab_send_slot(&c->pool, slot), thread),
             *in = part(c, lab_receive_slot(&c->pool, slot), thread);
        if (lab.rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, c->peer, 1, comm);
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, c->peer, 1, comm);
        }
    }
}

/* The first thread's ping-pong; the second one waits until that of the other rank is over. */
static void waiting(struct lab_case *c, int thread, long operations)
{
    const struct crew *crew = c->more;
    MPI_Comm mine = crew->waits[lab.rank], other = crew->waits[c->peer];
    char over = 0;
    if (thread == 0)
        pingpong(c, 0, operations);
    if (crew->call == BARRIER) {
        MPI_Barrier(thread == 0 ? other : mine);
    } else if (thread == 0) {
        MPI_Send(&over, 1, MPI_BYTE, c->peer, 1, other);
    } else {
        if (crew->call == PROBE)
            MPI_Probe(c->peer, 1, mine, MPI_STATUS_IGNORE);
        MPI_Recv(&over, 1, MPI_BYTE, c->peer, 1, mine, MPI_STATUS_IGNORE);
    }
}

static void rate(struct lab_case *c, int thread, long operations)
{
    const struct crew *crew = c->more;
    int bytes = (int)c->bytes;
    char answer = 0;
    MPI_Comm comm = crew->comms[thread];
    MPI_Request requests[WINDOW];
    for (long i = 0; i < operations; i++) {
        size_t slot = (size_t)i & (c->pool.slots - 1);
        char *out = part(c, lab_send_slot(&c->pool, slot), thread),
             *in = part(c, lab_receive_slot(&c->pool, slot), thread);
        for (int w = 0; w < WINDOW; w++)
            if (lab.rank == 0)
                MPI_Isend(out + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, comm, &requests[w]);
            else
                MPI_Irecv(in + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, comm, &requests[w]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (lab.rank == 0)
            MPI_Recv(&answer, 1, MPI_BYTE, c->peer, 2, comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_BYTE, c->peer, 2, comm);
    }
}

/* The life of every thread but the first. */
static void *serve(void *argument)
{
    struct member *me = argument;
    struct crew *crew = me->crew;
    for (;;) {
        pthread_barrier_wait(&crew->go);
        if (!crew->operations)
            return NULL;
        crew->work(crew->c, me->thread, crew->operations);
        pthread_barrier_wait(&crew->done);
    }
}

static double run(struct lab_case *c, long operations)
{
    struct crew *crew = c->more;
    crew->c = c;
    crew->operations = operations;
    double start = lab_now();
    if (crew->threads > 1)
        pthread_barrier_wait(&crew->go);
    crew->work(c, 0, operations);
    if (crew->threads > 1)
        pthread_barrier_wait(&crew->done);
    return lab_now() - start;
}

/* Bytes that each thread sends and receives in one operation. */
static size_t carried(struct lab_case *c)
{
    const struct crew *crew = c->more;
    return crew->work == rate ? WINDOW * c->bytes : c->bytes;
}

static void fill(struct lab_case *c, size_t slot, size_t message)
{
    const struct crew *crew = c->more;
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->pool.receive_bytes);
    for (int t = 0; t < crew->threads; t++)
        lab_fill(part(c, lab_send_slot(&c->pool, slot), t), carried(c), lab_key(lab.rank, t, message));
}

/* How many threads of a rank move data. */
static int movers(const struct crew *crew)
{
    return crew->work == waiting ? 1 : crew->threads;
}

static bool check(struct lab_case *c, size_t slot, size_t message)
{
    const struct crew *crew = c->more;
    bool well = true;
    for (int t = 0; well && t < movers(crew); t++)
        well = lab_check(part(c, lab_receive_slot(&c->pool, slot), t), carried(c), lab_key(c->peer, t, message));
    return well;
}

static void measure(struct crew *crew, const char *bench, size_t bytes)
{
    static struct lab_samples samples;
    char x[96];
    bool rates = crew->work == rate;
    struct lab_case c = {
        .bench = bench, .form = "hot", .bytes = bytes, .x = x, .run = run, .fill = fill, .check = check};
    int n = snprintf(x, sizeof x, "{\"threads\":%d,\"level\":\"%s\"", crew->threads, LEVEL_NAME);
    if (crew->work == waiting)
        n += snprintf(x + n, sizeof x - (size_t)n, ",\"call\":\"%s\"", names[crew->call]);
    snprintf(x + n, sizeof x - (size_t)n, "}");
    c.peer = 1 - lab.rank;
    c.more = crew;
    if (rates && lab.rank == 0)
        c.check = NULL;
    crew->region = lab_stride(carried(&c));
    lab_pool_open(&c.pool, (size_t)crew->threads * crew->region, (size_t)crew->threads * crew->region, false);
    lab_measure(&c, &samples);
    if (rates)
        lab_print_rates(&c, &samples, "rate", "messages/s", (double)WINDOW * crew->threads);
    else
        lab_print_times(&c, &samples, "latency", "us", 0.5e6);
    lab_pool_close(&c.pool);
}

static void with_threads(int threads)
{
    struct crew crew = {.threads = threads};
    struct member members[THREADS];
    pthread_t ids[THREADS];
    pthread_barrier_init(&crew.go, NULL, (unsigned)threads);
    pthread_barrier_init(&crew.done, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &crew.comms[t]);
        members[t] = (struct member){&crew, t};
        if (t && pthread_create(&ids[t], NULL, serve, &members[t]))
            lab_die("cannot start a thread");
    }
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &crew.waits[i]);
    crew.work = pingpong;
    if (lab_wanted("threads_pingpong"))
        LAB_EACH_SIZE(bytes, pingpong_sizes)
    measure(&crew, "threads_pingpong", *bytes);
    crew.work = rate;
    if (lab_wanted("threads_rate"))
        LAB_EACH_SIZE(bytes, rate_sizes)
    measure(&crew, "threads_rate", *bytes);
    crew.work = waiting;
    if (threads > 1 && lab_wanted("threads_waiting") && lab_bytes_wanted(8))
        for (crew.call = RECV; crew.call < CALLS; crew.call++)
            measure(&crew, "threads_waiting", 8);
    crew.operations = 0;
    if (threads > 1)
        pthread_barrier_wait(&crew.go);
    for (int t = 0; t < threads; t++) {
        if (t)
            pthread_join(ids[t], NULL);
        MPI_Comm_free(&crew.comms[t]);
    }
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&crew.waits[i]);
    pthread_barrier_destroy(&crew.go);
    pthread_barrier_destroy(&crew.done);
}

int main(int argc, char **argv)
{
    lab_start_pair(argc, argv, LEVEL);
    for (int threads = 1; lab.forms[0] && threads <= THREADS; threads++)
        with_threads(threads);
    return lab_end();
}
