/* The least time that this machine allows for a message between two processes, without MPI: limit.py.
 *
 * The two processes are bound to the first two processors that may be used. Prints JSON lines as the benchmark programs
 * do (programs/lab.h), with the way of copying, its piece and the number of directions in `x`. A sample is the mean of
 * a batch, for one way of a ping-pong or, with two directions, for an exchange in which both send.
 *
 * Forms: `hot` sends the same bytes again and again; in `fresh` each message has just been written by its sender, and
 * the time to write it counts.
 *
 * Option: --quick (fewer sizes and shorter batches). Exit code 1: a byte was wrong; 2: there are no two processors, or
 * no process, or no memory. */
#include "programs/bounce.h"
#include "programs/rewrite.h"
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { MAX_BYTES = 4 << 20, BATCHES = 7, RING = 4 << 20, CHECKED = 2, SPINS = 20000 };

static const size_t thorough[] = {8,         64,      128,      256,      512,      1 << 10,   2 << 10,
                                  4 << 10,   8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10,
                                  512 << 10, 1 << 20, 2 << 20,  4 << 20,  0};
static const size_t few[] = {8, 1 << 10, 64 << 10, 1 << 20, 4 << 20, 0};
static const size_t pieces[] = {2 << 10, 8 << 10, 32 << 10, 0};

/* What a process writes and its partner reads. Counters only grow. */
struct side {
    _Alignas(128) _Atomic uint64_t ready;  /* messages that may be copied, or pieces in the ring */
    _Alignas(128) _Atomic uint64_t taken;  /* messages that this process has copied, or pieces of the partner's ring */
    _Alignas(128) _Atomic uint64_t pushed; /* messages of which this process has copied its part to the partner */
    _Alignas(128) _Atomic uint64_t met;    /* times that this process has come to a barrier */
    uint64_t turns;
    bool wrong, no_attach;
    _Alignas(4096) char out[MAX_BYTES];
    _Alignas(4096) char in[MAX_BYTES];
    _Alignas(4096) char ring[RING];
};

static struct side *sides, *mine, *theirs;
static char *private_out, *private_in; /* at the same addresses in both processes */
static pid_t partner;
static bool second;             /* of the two processes */
static uint64_t sent, received; /* messages or pieces since the start, as in `ready` and `taken` */

/* Waits until a counter of the partner has reached a value; after some time, others may have the processor. */
static inline void await(_Atomic uint64_t *counter, uint64_t value)
{
    for (long spins = 1; atomic_load_explicit(counter, memory_order_acquire) < value; spins++)
        if (spins % SPINS == 0)
            sched_yield();
}

static inline void publish(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_release);
}

static void barrier(void)
{
    uint64_t next = atomic_load_explicit(&mine->met, memory_order_relaxed) + 1;
    publish(&mine->met, next);
    await(&theirs->met, next);
}

/* --- the ways ----------------------------------------------------------------------------------------------------- */

struct way {
    const char *name;
    char *(*from)(void), *(*to)(void); /* the buffers that hold messages */
    void (*send)(size_t bytes);        /* makes a message available */
    void (*receive)(size_t bytes);     /* takes the next one */
    void (*exchange)(size_t bytes);    /* both, and waits until the partner no longer reads what was sent */
};

static char *shared_out(void)
{
    return mine->out;
}

static char *shared_in(void)
{
    return mine->in;
}

static char *own_out(void)
{
    return private_out;
}

static char *own_in(void)
{
    return private_in;
}

static void offer(size_t bytes)
{
    (void)bytes;
    publish(&mine->ready, ++sent);
}

static void take_copy(size_t bytes)
{
    await(&theirs->ready, ++received);
    memcpy(private_in, theirs->out, bytes);
    publish(&mine->taken, received);
}

static void take_attached(size_t bytes)
{
    await(&theirs->ready, ++received);
    struct iovec to = {private_in, bytes}, from = {private_out, bytes};
    if (process_vm_readv(partner, &to, 1, &from, 1, 0) != (ssize_t)bytes)
        mine->wrong = true;
    publish(&mine->taken, received);
}

static size_t half(size_t bytes)
{
    return bytes / 2 & ~(size_t)63;
}

/* The sender copies the second part, the receiver the first one. */
static void push_half(size_t bytes)
{
    publish(&mine->ready, ++sent);
    memcpy(theirs->in + half(bytes), mine->out + half(bytes), bytes - half(bytes));
    publish(&mine->pushed, sent);
}

static void take_half(size_t bytes)
{
    await(&theirs->ready, ++received);
    memcpy(mine->in, theirs->out, half(bytes));
    publish(&mine->taken, received);
    await(&theirs->pushed, received);
}

static size_t piece;
/* Twice a processor's own cache: writing what the partner still has in its cache takes several times as long. */
static size_t ring = RING / 2;

static size_t piece_of(size_t bytes, size_t at)
{
    return bytes - at < piece ? bytes - at : piece;
}

static void ring_put(size_t bytes, size_t at)
{
    memcpy(mine->ring + sent % (ring / piece) * piece, private_out + at, piece_of(bytes, at));
    publish(&mine->ready, ++sent);
}

static void ring_get(size_t bytes, size_t at)
{
    memcpy(private_in + at, theirs->ring + received % (ring / piece) * piece, piece_of(bytes, at));
    publish(&mine->taken, ++received);
}

static void ring_send(size_t bytes)
{
    for (size_t at = 0; at < bytes; at += piece) {
        if (sent >= ring / piece)
            await(&theirs->taken, sent + 1 - ring / piece);
        ring_put(bytes, at);
    }
}

static void ring_receive(size_t bytes)
{
    for (size_t at = 0; at < bytes; at += piece) {
        await(&theirs->ready, received + 1);
        ring_get(bytes, at);
    }
}

static void ring_exchange(size_t bytes)
{
    size_t out = 0, in = 0;
    while (out < bytes || in < bytes) {
        if (out < bytes && sent < atomic_load_explicit(&theirs->taken, memory_order_acquire) + ring / piece) {
            ring_put(bytes, out);
            out += piece;
        }
        if (in < bytes && received < atomic_load_explicit(&theirs->ready, memory_order_acquire)) {
            ring_get(bytes, in);
            in += piece;
        }
    }
}

#define EXCHANGE(name, send, receive)                                                                                  \
    static void name(size_t bytes)                                                                                     \
    {                                                                                                                  \
        send(bytes);                                                                                                   \
        receive(bytes);                                                                                                \
        await(&theirs->taken, sent);                                                                                   \
    }
EXCHANGE(exchange_copies, offer, take_copy)
EXCHANGE(exchange_attached, offer, take_attached)
EXCHANGE(exchange_halves, push_half, take_half)

static const struct way ways[] = {
    {"one copy by the receiver", shared_out, own_in, offer, take_copy, exchange_copies},
    {"one copy, each half", shared_out, shared_in, push_half, take_half, exchange_halves},
    {"cross-memory attach", own_out, own_in, offer, take_attached, exchange_attached},
    {"two copies", own_out, own_in, ring_send, ring_receive, ring_exchange},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* --- measuring ---------------------------------------------------------------------------------------------------- */

/* Seconds for one way or for one exchange, the mean of so many turns. */
static double batch(const struct way *way, size_t bytes, bool fresh, bool both, uint64_t turns)
{
    char *from = way->from();
    double start = bounce_now();
    for (uint64_t i = 0; i < turns; i++) {
        if (second && !both)
            way->receive(bytes);
        if (fresh)
            rewrite(from, bytes);
        if (both) {
            way->exchange(bytes);
            continue;
        }
        way->send(bytes);
        if (!second)
            way->receive(bytes);
    }
    return (bounce_now() - start) / (double)turns / (both ? 1 : 2);
}

static void fill(char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)((i * 31 + (i >> 8) * 7 + (i >> 16) * 13 + seed) & 0xff);
}

/* Some messages with patterns of their own, whose bytes are compared. */
static void verify(const struct way *way, size_t bytes, bool fresh, bool both)
{
    static char expected[MAX_BYTES];
    for (unsigned i = 0; i < CHECKED; i++) {
        fill(way->from(), bytes, 2 * i + second);
        fill(expected, bytes, 2 * i + !second);
        memset(way->to(), 0, bytes);
        barrier();
        batch(way, bytes, fresh, both, 2);
        barrier();
        if (memcmp(way->to(), expected, bytes) != 0)
            mine->wrong = true;
        barrier();
    }
}

/* As many turns as take this time; both processes use the number of the first one. */
static uint64_t turns_for(const struct way *way, size_t bytes, bool fresh, bool both, double seconds)
{
    batch(way, bytes, fresh, both, 2);
    double once = batch(way, bytes, fresh, both, bytes <= 64 << 10 ? 20 : 2);
    if (!second)
        mine->turns = (uint64_t)(seconds / (both ? 1 : 2) / once) + 2;
    barrier();
    return sides[0].turns;
}

static void measure(const struct way *way, size_t bytes, bool fresh, bool both, double seconds)
{
    verify(way, bytes, fresh, both);
    uint64_t turns = turns_for(way, bytes, fresh, both, seconds);
    double samples[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        barrier();
        samples[i] = batch(way, bytes, fresh, both, turns);
    }
    if (second)
        return;
    printf("{\"bench\":\"limit\",\"form\":\"%s\",\"bytes\":%zu,\"ranks\":2,\"metric\":\"latency\",\"unit\":\"us\","
           "\"samples\":[",
           fresh ? "fresh" : "hot", bytes);
    for (int i = 0; i < BATCHES; i++)
        printf("%s%.4f", i ? "," : "", 1e6 * samples[i]);
    printf("],\"verified\":%s,\"x\":{\"way\":\"%s\",\"directions\":%d,\"piece\":%zu}}\n",
           sides[0].wrong || sides[1].wrong ? "false" : "true", way->name, both ? 2 : 1,
           way->send == ring_send ? piece : 0);
    fflush(stdout);
}

static void measure_all(const size_t *sizes, double seconds)
{
    for (int fresh = 0; fresh < 2; fresh++)
        for (int both = 0; both < 2; both++)
            measure(&ways[0], 0, fresh, both, seconds); /* the flag alone */
    for (const size_t *bytes = sizes; *bytes; bytes++)
        for (int fresh = 0; fresh < 2; fresh++)
            for (int both = 0; both < 2; both++)
                for (const struct way *way = ways; way < ways + WAYS; way++) {
                    if (way->send == ring_send)
                        for (const size_t *p = pieces; *p && (p == pieces || p[-1] < *bytes); p++) {
                            piece = *p;
                            measure(way, *bytes, fresh, both, seconds);
                        }
                    else if (way->receive != take_attached || !(mine->no_attach || theirs->no_attach))
                        measure(way, *bytes, fresh, both, seconds);
                }
}

/* Prepares one of the two processes: its side, its processor, and whether it may read its partner's memory. */
static bool start(bool is_second, pid_t other)
{
    second = is_second;
    partner = other;
    mine = &sides[second];
    theirs = &sides[!second];
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (second)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!bounce_bind(0, second))
        return false;
    memset(private_out, 0, 2 * MAX_BYTES); /* a copy of its own */
    long own_cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (own_cache > 0)
        ring = 2 * (size_t)own_cache < RING ? 2 * (size_t)own_cache : RING;
    memset(mine->out, 0, sizeof mine->out + sizeof mine->in + sizeof mine->ring);
    barrier();
    char byte;
    struct iovec to = {&byte, 1}, from = {private_out, 1};
    mine->no_attach = process_vm_readv(partner, &to, 1, &from, 1, 0) != 1;
    barrier();
    return true;
}

int main(int argc, char **argv)
{
    bool quick = argc == 2 && !strcmp(argv[1], "--quick");
    cpu_set_t processors;
    if (argc > 1 && !quick) {
        fprintf(stderr, "limit: the only option is --quick\n");
        return 2;
    }
    if (sched_getaffinity(0, sizeof processors, &processors) || CPU_COUNT(&processors) < 2)
        return 2;
    sides = mmap(NULL, 2 * sizeof *sides, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    private_out = mmap(NULL, 2 * MAX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sides == MAP_FAILED || private_out == MAP_FAILED)
        return 2;
    private_in = private_out + MAX_BYTES;
    pid_t first = getpid(), child = fork();
    if (child < 0)
        return 2;
    if (!start(child == 0, child ? child : first)) {
        if (child)
            kill(child, SIGKILL);
        return 2;
    }
    measure_all(quick ? few : thorough, quick ? 5e-4 : 2e-3);
    int code = sides[0].wrong || sides[1].wrong;
    if (child)
        waitpid(child, NULL, 0);
    return code;
}
