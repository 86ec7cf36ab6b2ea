/* What every benchmark program shares: options, clock, patterns, buffers, measuring, output.
 *
 * A program is one C file. Its first line says at which numbers of ranks it is to be run: `lab: ranks=2`,
 * `ranks=2,4,8`. It is portable C11 over MPI-3.1 and is compiled unchanged with every MPI library that is compared,
 * so nothing here may favour one of them.
 *
 * Output: one JSON object per line on stdout, printed by rank 0:
 *     {"bench":"pingpong","form":"hot","bytes":8,"ranks":2,"metric":"latency","unit":"us","samples":[...],
 *      "verified":true,"x":{...}}
 * `x` holds further parameters and may be missing. Smaller is better unless the unit ends in "/s" or is "%".
 *
 * Options: --only NAME[,NAME]  --min-bytes N  --max-bytes N  --sizes N[,N]  --forms hot,cold,fresh  --samples N --quick
 *          --start barrier|window
 * Exit code: 0; 1 when a transferred byte was wrong; 2 when the program cannot run like this.
 *
 * How a case is measured (`lab_measure`):
 *   1. Verification. Several operations in a row, each with buffers and a pattern of its own; then every received
 *      byte is compared, and the bytes behind each buffer must be untouched. Twice, with different patterns (once
 *      when it is very slow).
 *   2. Calibration. The number of operations in a batch is chosen so that a batch takes about 5 ms; all ranks use
 *      the same number.
 *   3. Batches, each after a barrier or in a window. A sample is the time per operation in one batch: every rank takes
 * its mean, the slowest counts.
 *
 * Forms: `hot` uses the same buffers for every operation; `cold` goes through a pool of 64 MB (all ranks together)
 * in an order that prefetchers do not foresee, so that an operation finds its buffers out of the inner caches. Some
 * programs have `fresh`: as `hot`, but each send buffer is written before it is sent, and that time counts. */
#ifndef LAB_H
#define LAB_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rewrite.h"
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    LAB_MAX_SAMPLES = 1000,
    LAB_MAX_SIZES = 200,
    LAB_MAX_ITERATIONS = 100000,
    LAB_MIN_SAMPLES = 3,  /* taken even when an operation is very slow */
    LAB_CHECKED = 8,      /* operations in a row that are verified */
    LAB_LINE = 64,        /* bytes of a cache line */
    LAB_UNTOUCHED = 0x5a, /* what lies around buffers */
    LAB_UNRECEIVED = 0xee /* what lies in a receive buffer before anything arrives */
};
#define LAB_POOL ((size_t)64 << 20)    /* bytes of all buffers of all ranks in the cold form */
#define LAB_MEMORY ((size_t)256 << 20) /* cases whose buffers need more on all ranks together are left out */

/* Open MPI 5 announces MPI 3.1 but has the persistent collectives of MPI 4. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define LAB_PERSISTENT_COLLECTIVES 1
#endif

enum { LAB_HOT, LAB_COLD, LAB_FRESH };
static const char *const lab_forms[] = {"hot", "cold", "fresh"};

static struct {
    int rank, ranks;
    const char *program; /* name of the executable without its folder */
    const char *only;    /* list of names; NULL: everything */
    size_t min_bytes, max_bytes;
    size_t sizes[LAB_MAX_SIZES + 1]; /* those asked for, ended by SIZE_MAX; none: the program's own */
    bool forms[3];                   /* hot, cold, fresh */
    int samples;
    size_t checked; /* operations in a row that are verified, a power of two, at most LAB_CHECKED */
    bool quick;
    bool windows;        /* batches begin at a time that was agreed on, not after a barrier */
    double clock_offset; /* rank 0's clock minus this one's, in seconds */
    bool wrong;          /* a verification failed on some rank */
} lab;

/* --- clock and computing ------------------------------------------------------------------------------------------ */

static inline double lab_now(void) /* seconds */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void lab_sleep(double seconds) /* without using the processor */
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Floating-point work on registers only: no memory, no system calls, no MPI. One unit takes some ten nanoseconds. */
static inline double lab_compute(long units)
{
    static volatile double result;
    double a = 1.0 + 1e-9 * result, b = 0.5;
    for (long i = 0; i < units; i++) {
        a = a * 0.999999 + b * 1e-6;
        b = b * 0.999998 + a * 2e-6;
    }
    result = a + b;
    return result;
}

static inline void lab_compute_for(double seconds)
{
    for (double end = lab_now() + seconds; lab_now() < end;)
        lab_compute(100);
}

/* --- starting together -------------------------------------------------------------------------------------------- */

enum { LAB_CLOCK_ROUNDS = 50 };

/* Finds the difference of the clocks from the exchange of messages that took the least time. */
static inline void lab_compare_clocks(void)
{
    for (int other = 1; other < lab.ranks; other++) {
        double least = 1e9;
        for (int i = 0; i < LAB_CLOCK_ROUNDS; i++) {
            double theirs;
            if (lab.rank == 0) {
                MPI_Recv(&theirs, 1, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                theirs = lab_now();
                MPI_Send(&theirs, 1, MPI_DOUBLE, other, 2, MPI_COMM_WORLD);
            } else if (lab.rank == other) {
                double before = lab_now(), after;
                MPI_Send(&before, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
                MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                after = lab_now();
                if (after - before < least) {
                    least = after - before;
                    lab.clock_offset = theirs - (before + after) / 2;
                }
            }
        }
    }
}

/* Waits for a time, `length` seconds from rank 0's now, that all ranks agree on; gives it by this rank's clock, or a
 * negative number if it was over when this rank learned of it. */
static inline double lab_window(double length)
{
    double start = lab_now() + length;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    start -= lab.clock_offset;
    if (lab_now() > start)
        return -1;
    while (lab_now() < start)
        ;
    return start;
}

/* All ranks leave this together: after a barrier or, with --start window, in a window; a rank that is late begins at
 * once. */
static inline void lab_together(void)
{
    if (lab.windows)
        lab_window(200e-6);
    else
        MPI_Barrier(MPI_COMM_WORLD);
}

/* --- start, options, end ------------------------------------------------------------------------------------------ */

/* Ends the job because the program cannot go on; for mistakes of the caller see lab_refuse. */
static inline __attribute__((format(printf, 1, 2), noreturn)) void lab_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: rank %d: ", lab.program, lab.rank);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

/* Is `name` one of the words of the comma-separated `list`? */
static inline bool lab_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = list; word; word = strchr(word, ','), word = word ? word + 1 : NULL)
        if (!strncmp(word, name, length) && (word[length] == ',' || !word[length]))
            return true;
    return false;
}

/* Reads a list of sizes. */
static inline bool lab_read_sizes(const char *text)
{
    int count = 0;
    for (char *end = NULL; text && count < LAB_MAX_SIZES; text = *end ? end + 1 : NULL) {
        lab.sizes[count++] = strtoull(text, &end, 10);
        if (end == text || (*end && *end != ','))
            return false;
    }
    lab.sizes[count] = SIZE_MAX;
    return !text;
}

/* Reads the command line; gives the argument that is wrong, or NULL. Needs no MPI. */
static inline const char *lab_options(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    lab.program = slash ? slash + 1 : argv[0];
    lab.max_bytes = SIZE_MAX;
    lab.sizes[0] = SIZE_MAX;
    lab.forms[LAB_HOT] = lab.forms[LAB_COLD] = lab.forms[LAB_FRESH] = true;
    lab.samples = 0;
    lab.checked = LAB_CHECKED;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = argv[i + 1]; /* argv ends with NULL */
        char *end = (char *)"";
        if (!strcmp(name, "--quick")) {
            lab.quick = true;
            continue;
        }
        if (!value)
            return name;
        if (!strcmp(name, "--only")) {
            lab.only = value;
        } else if (!strcmp(name, "--min-bytes")) {
            lab.min_bytes = strtoull(value, &end, 10);
        } else if (!strcmp(name, "--max-bytes")) {
            lab.max_bytes = strtoull(value, &end, 10);
        } else if (!strcmp(name, "--sizes")) {
            if (!lab_read_sizes(value))
                return value;
        } else if (!strcmp(name, "--forms")) {
            bool some = false;
            for (int form = LAB_HOT; form <= LAB_FRESH; form++)
                some |= lab.forms[form] = lab_listed(value, lab_forms[form]);
            if (!some)
                return value;
        } else if (!strcmp(name, "--start")) {
            lab.windows = !strcmp(value, "window");
            if (!lab.windows && strcmp(value, "barrier"))
                return value;
        } else if (!strcmp(name, "--samples")) {
            lab.samples = (int)strtol(value, &end, 10);
            if (lab.samples < 1 || lab.samples > LAB_MAX_SAMPLES)
                return value;
        } else {
            return name;
        }
        if (*end)
            return value;
        i++;
    }
    if (!lab.samples)
        lab.samples = lab.quick ? 5 : 11;
    return NULL;
}

/* Says on rank 0 why the program cannot run like this, and ends it on all ranks with code 2. */
static inline __attribute__((format(printf, 1, 2), noreturn)) void lab_refuse(const char *format, ...)
{
    if (lab.rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%s: ", lab.program);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(2);
}

/* Starts MPI with the given thread level; the number of ranks must be a multiple of `multiple`. */
static inline void lab_start(int argc, char **argv, int level, int multiple)
{
    int provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &lab.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &lab.ranks);
    const char *bad = lab_options(argc, argv);
    if (bad)
        lab_refuse(
            "'%s' is not an option or not a value for one; there are --only NAME[,NAME], --min-bytes N, --max-bytes N, "
            "--sizes N[,N] (at most %d), --forms hot,cold,fresh, --samples N (1 to %d), --start barrier or window, and "
            "--quick",
            bad, LAB_MAX_SIZES, LAB_MAX_SAMPLES);
    if (lab.ranks % multiple)
        lab_refuse("runs with a multiple of %d ranks, this job has %d", multiple, lab.ranks);
    if (provided < level)
        lab_refuse("needs thread level %d, this library grants %d", level, provided);
    if (lab.windows)
        lab_compare_clocks();
}

/* Starts MPI for programs that need exactly two ranks. */
static inline void lab_start_pair(int argc, char **argv, int level)
{
    lab_start(argc, argv, level, 2);
    if (lab.ranks != 2)
        lab_refuse("runs with 2 ranks, this job has %d", lab.ranks);
}

/* Ends MPI; gives the exit code. */
static inline int lab_end(void)
{
    MPI_Finalize();
    return lab.wrong ? 1 : 0;
}

/* --- what is wanted ----------------------------------------------------------------------------------------------- */

/* Was this benchmark asked for, by its name or by that of the program? */
static inline bool lab_wanted(const char *bench)
{
    return !lab.only || lab_listed(lab.only, bench) || lab_listed(lab.only, lab.program);
}

static inline bool lab_bytes_wanted(size_t bytes)
{
    return bytes >= lab.min_bytes && bytes <= lab.max_bytes;
}

/* A list of sizes that ends at SIZE_MAX, one for thorough and one for quick runs. */
#define LAB_SIZES(name, thorough, few)                                                                                 \
    static const size_t name##_thorough[] = {LAB_LIST thorough, SIZE_MAX}, name##_few[] = {LAB_LIST few, SIZE_MAX};    \
    static inline const size_t *name(void)                                                                             \
    {                                                                                                                  \
        return lab.sizes[0] != SIZE_MAX ? lab.sizes : lab.quick ? name##_few : name##_thorough;                        \
    }
#define LAB_LIST(...) __VA_ARGS__
#define LAB_EACH_SIZE(bytes, list)                                                                                     \
    for (const size_t *bytes = (list)(); *bytes != SIZE_MAX; bytes++)                                                  \
        if (lab_bytes_wanted(*bytes))
#define LAB_EACH_FORM(cold)                                                                                            \
    for (int cold = LAB_HOT; cold <= LAB_COLD; cold++)                                                                 \
        if (lab.forms[cold])
/* For programs that call `lab_to_send`. */
#define LAB_EACH_FORM_AND_FRESH(form)                                                                                  \
    for (int form = LAB_HOT; form <= LAB_FRESH; form++)                                                                \
        if (lab.forms[form])

/* --- patterns ----------------------------------------------------------------------------------------------------- */

/* Names a message: its sender, its receiver, and which one it is. */
static inline uint64_t lab_key(int sender, int receiver, size_t message)
{
    uint64_t key = (uint64_t)(sender + 1) * 0x9e3779b97f4a7c15u + (uint64_t)(receiver + 1) * 0xc2b2ae3d27d4eb4fu +
                   (uint64_t)message;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    return key ^ key >> 32;
}

static inline uint64_t lab_word(uint64_t key, size_t position)
{
    uint64_t word = (key + (uint64_t)position) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 29;
}

/* Writes the bytes of message `key` from byte `from` on (a multiple of 8). */
static inline void lab_fill_from(void *buffer, size_t bytes, uint64_t key, size_t from)
{
    char *to = buffer;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = lab_word(key, (from + at) / 8);
        memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

/* Compares bytes with message `key` from byte `from` on; the first that differs is named on stderr. */
static inline bool lab_check_from(const void *buffer, size_t bytes, uint64_t key, size_t from)
{
    const unsigned char *got = buffer;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = lab_word(key, (from + at) / 8);
        size_t length = bytes - at < 8 ? bytes - at : 8;
        if (!memcmp(got + at, &word, length))
            continue;
        while (got[at] == ((unsigned char *)&word)[at % 8])
            at++;
        fprintf(stderr, "%s: rank %d: byte %zu of %zu is 0x%02x and should be 0x%02x\n", lab.program, lab.rank,
                from + at, from + bytes, got[at], ((unsigned char *)&word)[at % 8]);
        return false;
    }
    return true;
}

static inline void lab_fill(void *buffer, size_t bytes, uint64_t key)
{
    lab_fill_from(buffer, bytes, key, 0);
}

static inline bool lab_check(const void *buffer, size_t bytes, uint64_t key)
{
    return lab_check_from(buffer, bytes, key, 0);
}

/* Are all these bytes still what they were before? */
static inline bool lab_untouched(const void *memory, size_t bytes, int value)
{
    const unsigned char *got = memory;
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != value) {
            fprintf(stderr, "%s: rank %d: byte %zu beside a message was overwritten with 0x%02x\n", lab.program,
                    lab.rank, i, got[i]);
            return false;
        }
    return true;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

/* Equal slots, each a send buffer and a receive buffer with a free line behind it; `lab_next` says which one comes
 * next. */
struct lab_pool {
    char *memory, *send, *receive;
    size_t send_bytes, receive_bytes, send_stride, receive_stride, total;
    size_t slots;   /* in turn, a power of two */
    size_t checked; /* used for verification, a power of two */
    size_t at, step;
};

static inline size_t lab_stride(size_t bytes)
{
    return bytes ? (bytes + 2 * LAB_LINE - 1) / LAB_LINE * LAB_LINE : 0;
}

/* Gives false when one slot of all ranks together needs more than LAB_MEMORY. */
static inline bool lab_pool_open(struct lab_pool *p, size_t send_bytes, size_t receive_bytes, bool cold)
{
    *p = (struct lab_pool){.send_bytes = send_bytes, .receive_bytes = receive_bytes, .slots = 1, .checked = 1};
    p->send_stride = lab_stride(send_bytes);
    p->receive_stride = lab_stride(receive_bytes);
    size_t slot = p->send_stride + p->receive_stride, all = slot * (size_t)lab.ranks;
    if (all > LAB_MEMORY + LAB_MEMORY / 16)
        return false;
    if (!all) {
        p->checked = lab.checked;
        slot = LAB_LINE;
    }
    while (all && p->checked < lab.checked && 2 * p->checked * all <= LAB_POOL)
        p->checked *= 2;
    while (cold && all && 2 * p->slots * all <= LAB_POOL)
        p->slots *= 2;
    p->step = (p->slots * 5 / 8) | 1;
    size_t most = p->slots > p->checked ? p->slots : p->checked;
    p->total = (most * slot + 8191) / 4096 * 4096;
    p->memory = mmap(NULL, p->total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->memory == MAP_FAILED)
        lab_die("no memory for %zu bytes of buffers", p->total);
    memset(p->memory, LAB_UNTOUCHED, p->total);
    p->send = p->memory;
    /* On a page of its own even if nothing is sent: some libraries refuse equal addresses of no bytes. */
    p->receive = p->memory + (most * p->send_stride + 4095) / 4096 * 4096;
    if (p->receive == p->memory)
        p->receive += 4096;
    return true;
}

static inline void lab_pool_close(struct lab_pool *p)
{
    munmap(p->memory, p->total);
    p->memory = NULL;
}

static inline size_t lab_next(struct lab_pool *p)
{
    size_t slot = p->at;
    p->at = (slot + p->step) & (p->slots - 1);
    return slot;
}

static inline char *lab_send_slot(const struct lab_pool *p, size_t slot)
{
    return p->send + slot * p->send_stride;
}

static inline char *lab_receive_slot(const struct lab_pool *p, size_t slot)
{
    return p->receive + slot * p->receive_stride;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

/* One thing to measure. A program fills in the upper part; `fill` and `check` may be NULL when no bytes are carried. */
struct lab_case {
    const char *bench, *form;
    size_t bytes;
    const char *x;                                                /* JSON object with further parameters, or NULL */
    double (*run)(struct lab_case *, long operations);            /* gives the seconds this rank spent in them */
    void (*fill)(struct lab_case *, size_t slot, size_t message); /* prepares a slot for message number `message` */
    bool (*check)(struct lab_case *, size_t slot, size_t message);
    struct lab_pool pool;
    int peer;   /* of programs in which ranks work in pairs */
    bool fresh; /* send buffers are written before they are sent */
    void *more; /* whatever else the program needs */
    /* Kept by lab_measure and `run`: operations since the last start of a sequence; all ranks have the same. Roots
     * rotate with it. */
    long operation;
};

struct lab_samples {
    double seconds[LAB_MAX_SAMPLES]; /* per operation */
    int count;
    bool verified;
};

/* The messages that pairs exchange: the whole send slot, to and from `peer`. */
static inline void lab_fill_pair(struct lab_case *c, size_t slot, size_t message)
{
    lab_fill(lab_send_slot(&c->pool, slot), c->pool.send_bytes, lab_key(lab.rank, c->peer, message));
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->pool.receive_bytes);
}

static inline bool lab_check_pair(struct lab_case *c, size_t slot, size_t message)
{
    return lab_check(lab_receive_slot(&c->pool, slot), c->pool.receive_bytes, lab_key(c->peer, lab.rank, message));
}

/* Gives a send buffer, written now in the form `fresh`. */
static inline char *lab_to_send(const struct lab_case *c, char *buffer, size_t bytes)
{
    if (c->fresh)
        rewrite(buffer, bytes);
    return buffer;
}

/* Messages to the peer and back, `operations` of each; gives the seconds it took. */
static inline double lab_ping_pong(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        if (lab.rank < c->peer) {
            MPI_Send(lab_to_send(c, out, c->bytes), bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(lab_to_send(c, out, c->bytes), bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD);
        }
    }
    return lab_now() - start;
}

/* Is it so on every rank? */
static inline bool lab_every(bool mine)
{
    int one = mine, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

/* Was everything received right on every rank? If not, the program ends with code 1. */
static inline bool lab_right(bool well)
{
    bool all = lab_every(well);
    lab.wrong |= !all;
    return all;
}

static inline bool lab_verify(struct lab_case *c)
{
    struct lab_pool *p = &c->pool, timed = *p;
    bool well = true, enough = false;
    p->slots = p->checked;
    p->step = 1;
    for (size_t round = 0; round < 2 && !enough; round++) {
        double start = lab_now();
        p->at = 0;
        c->operation = 0;
        for (size_t slot = 0; c->fill && slot < p->checked; slot++)
            c->fill(c, slot, round * LAB_CHECKED + slot);
        c->run(c, (long)p->checked);
        for (size_t slot = 0; c->check && slot < p->checked; slot++) {
            well = well && c->check(c, slot, round * LAB_CHECKED + slot);
            well = well && lab_untouched(lab_receive_slot(p, slot) + p->receive_bytes,
                                         p->receive_stride - p->receive_bytes, LAB_UNTOUCHED);
        }
        well = lab_right(well);
        enough = !lab_every(lab_now() - start < 0.2); /* very slow operations are verified once */
    }
    p->slots = timed.slots;
    p->step = timed.step;
    p->at = 0;
    c->operation = 0;
    return well;
}

/* Runs a batch on all ranks; gives the largest time per operation, and in *wall the time since `since`, both the
 * same on every rank. */
static inline double lab_batch(struct lab_case *c, long operations, double since, double *wall)
{
    double mine[2], most[2];
    lab_together();
    mine[0] = c->run(c, operations) / (double)operations;
    mine[1] = lab_now() - since;
    MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *wall = most[1];
    return most[0];
}

/* The number of operations that take about `target` seconds; warms up on the way. */
static inline long lab_calibrate(struct lab_case *c, double target)
{
    long operations = 1;
    for (;;) {
        double wall, each = lab_batch(c, operations, lab_now(), &wall);
        double fits = each > 0 ? target / each : LAB_MAX_ITERATIONS;
        if (fits > LAB_MAX_ITERATIONS)
            fits = LAB_MAX_ITERATIONS;
        if (fits < (double)operations * 4 || operations == LAB_MAX_ITERATIONS || wall > target)
            return fits < 1 ? 1 : (long)fits;
        operations = fits > (double)operations * 16 ? operations * 16 : (long)fits;
    }
}

/* Verifies, calibrates and takes the samples; on all ranks. Very slow operations get fewer samples, at least
 * LAB_MIN_SAMPLES. */
static inline void lab_measure(struct lab_case *c, struct lab_samples *s)
{
    double patience = lab.quick ? 0.15 : 0.5, start, wall;
    s->verified = lab_verify(c);
    long operations = lab_calibrate(c, lab.quick ? 0.002 : 0.005);
    if (operations > 1)
        lab_batch(c, operations, lab_now(), &wall);
    start = lab_now();
    for (s->count = 0; s->count < lab.samples;) {
        s->seconds[s->count++] = lab_batch(c, operations, start, &wall);
        if (wall > patience && s->count >= LAB_MIN_SAMPLES)
            break;
    }
}

/* --- output ------------------------------------------------------------------------------------------------------- */

/* Prints one line of results; on rank 0. `values` are in `unit`. */
static inline void lab_print(const struct lab_case *c, const char *metric, const char *unit, const double *values,
                             int count, bool verified)
{
    if (lab.rank)
        return;
    printf(
        "{\"bench\":\"%s\",\"form\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"metric\":\"%s\",\"unit\":\"%s\",\"samples\":[",
        c->bench, c->form, c->bytes, lab.ranks, metric, unit);
    for (int i = 0; i < count; i++)
        printf("%s%.6g", i ? "," : "", values[i]);
    printf("],\"verified\":%s", verified ? "true" : "false");
    if (c->x)
        printf(",\"x\":%s", c->x);
    printf("}\n");
    fflush(stdout);
}

/* Prints times: `factor` turns seconds per operation into the unit. */
static inline void lab_print_times(const struct lab_case *c, const struct lab_samples *s, const char *metric,
                                   const char *unit, double factor)
{
    double values[LAB_MAX_SAMPLES];
    for (int i = 0; i < s->count; i++)
        values[i] = s->seconds[i] * factor;
    lab_print(c, metric, unit, values, s->count, s->verified);
}

/* Prints rates: `amount` of the unit happen in one operation. */
static inline void lab_print_rates(const struct lab_case *c, const struct lab_samples *s, const char *metric,
                                   const char *unit, double amount)
{
    double values[LAB_MAX_SAMPLES];
    for (int i = 0; i < s->count; i++)
        values[i] = amount / s->seconds[i];
    lab_print(c, metric, unit, values, s->count, s->verified);
}

#endif
