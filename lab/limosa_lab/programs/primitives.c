/* lab: ranks=2,3,4,5,6,7,8 limit=600 */
/* The operations of which models are made (limosa_lab.model), each call on its own: all ranks start at the same time,
 * and the slowest counts. A sample is one call. So measured the source of the models, G. L. Taboada et al., section 3,
 * with 150 samples.
 *
 * `bytes` is what the models call n: see limosa_lab/model/metrics.py. Blocks are n / ranks bytes, and at least one byte
 * unless n is 0; vectors of doubles have n / 8 elements, and at least one. `send` is half of a ping-pong, on 2 ranks.
 *
 * How the ranks start at the same time is in `x`: after a barrier, or in a window, at a time that rank 0 has set and
 * that each has translated to its own clock. In a window a call that begins late is repeated.
 *
 * The thread level is MPI_THREAD_SINGLE, or MPI_THREAD_MULTIPLE with LAB_THREADS=multiple in the environment.
 *
 * Options of its own: --plan OPERATION=N[,N];...  --seconds S. A plan names the cases in the
 * order in which they are measured; after so many seconds no further case begins.
 *
 * Verified: each operation at each size, as in the other programs, with roots by turns. Times are those of calls with
 * root 0, or, of a plan's `OPERATION@turns`, of calls with roots by turns (`"roots":"turns"` in `x`). With
 * `OPERATION@loop` or `OPERATION@turns@loop` calls are back to back: a sample is the mean of a loop of calls without a
 * start in between (`"calls":"loop"` in `x`). */
#include "blocking.h"

#include <malloc.h>

LAB_SIZES(sizes, (0, 1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20),
          (0, 1, 16, 256, 4 << 10, 64 << 10, 1 << 20))

enum {
    DEFAULT_SAMPLES = 150,
    SAMPLES_OF_A_ROUND = 60,
    LEAST_SAMPLES = 4,

    LATE = 20,
    CHECKED_OF_LONG = 2,
    LONG = 4096
};
enum { UNKNOWN = -2, SEND = -1 };                 /* beside the collectives */
enum { SHORTEST_LOOP = 10, LONGEST_LOOP = 1000 }; /* calls */
#define LOOP_SECONDS 2e-4
#define WARM_UP_SECONDS 2e-3
#define NEVER 1e300

/* The root of each timed call is the next rank; otherwise it is rank 0. */
static bool roots_by_turns;
/* Calls are back to back, `calls` of them in a sample. */
static bool in_loops;
static long calls = 1;

/* How the calls of this run begin and end. */
struct manner {
    double patience; /* seconds for the samples of one case */
    int samples;     /* of one case, at most */
    double end;      /* no case begins after this time */
};

/* --- starting together -------------------------------------------------------------------------------------------- */

/* The calls of a sample; gives the seconds of each. The root is rank 0 each time, as in most programs, or the next rank
 * each time. */
static double sample(struct lab_case *c)
{
    is_root_fixed = !roots_by_turns;
    double seconds = c->run(c, calls);
    is_root_fixed = false;
    return seconds / (double)calls;
}

/* A sample, begun by all ranks together; gives this rank's time, or a negative one if it has begun late. */
static double after_barrier(struct lab_case *c)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return sample(c);
}

static double in_window(struct lab_case *c, double length)
{
    double start = lab_window(length);
    sample(c);
    return start < 0 ? -1 : (lab_now() - start) / (double)calls;
}

/* Calls until a batch of them is no faster than the one before: in its first calls a library touches its own memory for
 * the first time. Gives the seconds of a call with its start, the same on every rank. */
static double warm_up(struct lab_case *c)
{
    double each = 1e9, spent = 0;
    for (int batch = 1;; batch *= 2) {
        double begin = lab_now(), mine, slowest, before = each;
        for (int i = 0; i < batch; i++)
            after_barrier(c);
        mine = lab_now() - begin;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        spent += slowest;
        each = slowest / batch;
        if ((spent > WARM_UP_SECONDS && each > 0.95 * before) || spent > 10 * WARM_UP_SECONDS)
            return each;
    }
}

/* Takes the samples, of slow operations fewer, so that they take about `patience` seconds. */
static void measure(struct lab_case *c, struct lab_samples *s, const struct manner *how)
{
    static double mine[LAB_MAX_SAMPLES], all[LAB_MAX_SAMPLES];
    double length = 100e-6, fits;
    s->verified = lab_verify(c);
    int wanted = how->samples, late = 0;
    calls = 1;
    double each = warm_up(c);
    if (in_loops)
        calls = each * SHORTEST_LOOP > LOOP_SECONDS  ? SHORTEST_LOOP
                : each * LONGEST_LOOP < LOOP_SECONDS ? LONGEST_LOOP
                                                     : (long)(LOOP_SECONDS / each);
    fits = how->patience / (each * (double)calls);
    if (fits < wanted)
        wanted = fits > LEAST_SAMPLES ? (int)fits : wanted < LEAST_SAMPLES ? wanted : LEAST_SAMPLES;
    for (s->count = 0; s->count < wanted;) {
        int batch = wanted - s->count < LATE ? wanted - s->count : LATE;
        for (int i = 0; i < batch; i++)
            mine[i] = lab.windows ? in_window(c, length) : after_barrier(c);
        /* A call that any rank has begun late counts for none: all learn the least time, too. */
        double least[LATE];
        MPI_Allreduce(mine, all, batch, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(mine, least, batch, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        for (int i = 0; i < batch; i++)
            if (least[i] >= 0)
                s->seconds[s->count++] = all[i];
            else
                late++;
        if (late > LATE) { /* too short a window for this machine */
            late = 0;
            length *= 2;
        }
        if (length > 1)
            lab_die("the ranks do not manage to begin together within a second; use --start barrier");
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static bool in_blocks(enum collective which)
{
    return which == Allgather || which == Allgatherv || which == Gather || which == Gatherv || which == Scatter ||
           which == Scatterv || which == Alltoall || which == Alltoallv;
}

/* The bytes that a call is given: of a block, or of a vector. */
static size_t argument(enum collective which, size_t n)
{
    size_t bytes = in_blocks(which) ? n / (size_t)lab.ranks : n;
    if (reduces(which))
        bytes = n && n < sizeof(double) ? sizeof(double) : n / sizeof(double) * sizeof(double);
    return n && !bytes ? 1 : bytes;
}

static void print(struct lab_case *c, const struct lab_samples *s, size_t n, double factor)
{
    char x[100];
    snprintf(x, sizeof x, "{\"start\":\"%s\",\"argument\":%zu%s%s}", lab.windows ? "window" : "barrier", c->bytes,
             roots_by_turns ? ",\"roots\":\"turns\"" : "", in_loops ? ",\"calls\":\"loop\"" : "");
    c->x = x;
    c->bytes = n;
    lab_print_times(c, s, "time", "us", factor);
}

static void measure_send(size_t n, bool cold, const struct manner *how)
{
    static struct lab_samples samples;
    struct lab_case c = {.bench = "send",
                         .form = lab_forms[cold],
                         .bytes = n,
                         .run = lab_ping_pong,
                         .peer = 1 - lab.rank,
                         .fill = lab_fill_pair,
                         .check = lab_check_pair};
    if (lab.ranks != 2 || !lab_pool_open(&c.pool, n, n, cold))
        return;
    measure(&c, &samples, how);
    print(&c, &samples, n, 0.5e6);
    lab_pool_close(&c.pool);
}

static void measure_collective(enum collective which, size_t n, bool cold, const struct manner *how)
{
    static struct lab_samples samples;
    struct lab_case c = {
        .bench = collectives[which].bench, .form = lab_forms[cold], .bytes = argument(which, n), .run = collective_run};
    struct collective_arguments a;
    if (which == Barrier && n)
        return;
    if (which == Reduce_scatter_block && c.bytes / sizeof(double) % (size_t)lab.ranks)
        c.bytes += ((size_t)lab.ranks - c.bytes / sizeof(double) % (size_t)lab.ranks) * sizeof(double);
    if (collective_open(&c, &a, which, cold)) {
        c.fill = which == Barrier ? NULL : collective_fill;
        c.check = which == Barrier ? NULL : collective_check;
        measure(&c, &samples, how);
        print(&c, &samples, n, 1e6);
    }
    collective_close(&c, &a);
}

/* Measures an operation at the sizes that are wanted; false when the time is over. */
static bool measure_sizes(int which, const struct manner *how)
{
    LAB_EACH_FORM(cold) LAB_EACH_SIZE(n, sizes)
    {
        int over = lab_now() > how->end;
        if (how->end < NEVER)
            MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (over)
            return false;
        lab.checked = *n > LONG ? CHECKED_OF_LONG : LAB_CHECKED;
        if (cold && !*n)
            continue;
        if (which == SEND)
            measure_send(*n, cold, how);
        else
            measure_collective((enum collective)which, *n, cold, how);
    }
    return true;
}

/* --- a plan ------------------------------------------------------------------------------------------------------- */

/* The operation whose name is the first `length` characters; UNKNOWN if there is none. */
static int operation(const char *name, size_t length)
{
    if (length == strlen("send") && !strncmp(name, "send", length))
        return SEND;
    for (int which = 0; which < COLLECTIVES; which++)
        if (strlen(collectives[which].bench) == length && !strncmp(name, collectives[which].bench, length))
            return which;
    return UNKNOWN;
}

/* Takes a suffix off the end of a name of `*length` characters; false if it has another end. */
static bool take_suffix(const char *name, size_t *length, const char *suffix)
{
    size_t own = strlen(suffix);
    bool has = *length > own && !strncmp(name + *length - own, suffix, own);
    *length -= has ? own : 0;
    return has;
}

/* Measures what a plan names, in its order: "bcast=0,4,16;scan@loop=8". Plans are followed in several rounds, so that
 * fewer samples of collectives do in each. */
static void follow(char *plan, const struct manner *how)
{
    struct manner of_collectives = *how;
    if (of_collectives.samples > SAMPLES_OF_A_ROUND)
        of_collectives.samples = SAMPLES_OF_A_ROUND;
    for (char *rest = NULL, *part = strtok_r(plan, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        char *is = strchr(part, '=');
        size_t name = is ? (size_t)(is - part) : 0;
        in_loops = take_suffix(part, &name, "@loop");
        roots_by_turns = take_suffix(part, &name, "@turns");
        int which = is ? operation(part, name) : UNKNOWN;
        if (which == UNKNOWN || !lab_read_sizes(is + 1))
            lab_refuse("`%s` in the plan is not an operation with its sizes, such as bcast=0,4,16", part);
        if (!measure_sizes(which, which == SEND ? how : &of_collectives))
            return;
    }
}

/* --- main --------------------------------------------------------------------------------------------------------- */

/* Takes an option and its value out of the arguments; NULL if it is not there. */
static char *take(int *argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < *argc; i++)
        if (!strcmp(argv[i], name)) {
            char *value = argv[i + 1];
            memmove(argv + i, argv + i + 2, (size_t)(*argc - i - 1) * sizeof *argv);
            *argc -= 2;
            return value;
        }
    return NULL;
}

/* Keeps the C library's limit above which it maps each block by itself. The limit rises when a program frees such a
 * block. In a program that has freed none, a library whose calls allocate long buffers pays for new pages each time. */
static void keep_heap(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

int main(int argc, char **argv)
{
    keep_heap();
    /* This program's own options, taken out before the common ones are read. */
    const char *seconds = take(&argc, argv, "--seconds");
    char *plan = take(&argc, argv, "--plan");
    bool given = false;
    for (int i = 1; i < argc; i++)
        given |= !strcmp(argv[i], "--samples");
    const char *threads = getenv("LAB_THREADS");
    bool is_multiple = threads && !strcmp(threads, "multiple");
    lab_start(argc, argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, 1);
    struct manner how = {.patience = plan        ? 0.05
                                     : lab.quick ? 0.1
                                                 : 1,
                         .end = seconds ? lab_now() + strtod(seconds, NULL) : NEVER};
    if (!given)
        lab.samples = lab.quick ? 40 : DEFAULT_SAMPLES;
    how.samples = lab.samples;
    if (plan)
        follow(plan, &how);
    else
        for (int which = SEND; which < COLLECTIVES; which++)
            if (lab_wanted(which == SEND ? "send" : collectives[which].bench) && !measure_sizes(which, &how))
                break;
    return lab_end();
}
