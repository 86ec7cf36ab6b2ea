/* lab: ranks=1 */
/* The floor under every message in shared memory: two processes bounce a flag, a number each writes to a cache line of its own and the
 * other waits for. No MPI is involved: it is measured between a parent and its child before MPI_Init. `latency` is one way. Only the hot
 * form. Verified: the numbers arrive in order and none is left out. */
#include "lab.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct lines {
    _Alignas(128) _Atomic uint64_t ping;
    _Alignas(128) _Atomic uint64_t pong;
};

static bool well = true;

/* Lets both processes run on every processor: a launcher may have bound this one to a single core. Gives the number of processors. */
static int unbind(void)
{
    cpu_set_t set;
    memset(&set, 0xff, sizeof set);
    sched_setaffinity(0, sizeof set, &set);
    return sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
}

static void answer(struct lines *lines)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t expected = 1;; expected++) {
        uint64_t seen;
        while ((seen = atomic_load_explicit(&lines->ping, memory_order_acquire)) < expected)
            ;
        if (seen == UINT64_MAX)
            _exit(0);
        atomic_store_explicit(&lines->pong, seen, memory_order_release);
    }
}

/* Seconds for one way. */
static double bounce(struct lines *lines, long times)
{
    uint64_t number = atomic_load_explicit(&lines->ping, memory_order_relaxed);
    double start = lab_now();
    for (long i = 0; i < times; i++) {
        uint64_t seen;
        atomic_store_explicit(&lines->ping, ++number, memory_order_release);
        while ((seen = atomic_load_explicit(&lines->pong, memory_order_acquire)) < number)
            ;
        well = well && seen == number;
    }
    return (lab_now() - start) / (double)times / 2;
}

int main(int argc, char **argv)
{
    static double values[LAB_MAX_SAMPLES];
    struct lab_case c = {.bench = "flag", .form = "hot", .bytes = 8};
    pid_t child = -1;
    bool measured = !lab_options(argc, argv) && unbind() >= 2;
    struct lines *lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (measured && lines != MAP_FAILED && (child = fork()) == 0)
        answer(lines);
    measured = child > 0;
    if (measured) {
        long times = (long)(0.005 / 2 / bounce(lines, 10000)) + 1;
        bounce(lines, times);
        for (int i = 0; i < lab.samples; i++)
            values[i] = bounce(lines, times) * 1e6;
        atomic_store(&lines->ping, UINT64_MAX);
        waitpid(child, NULL, 0);
    }
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    if (!measured)
        lab_refuse("needs two processors and a second process");
    well = lab_right(well);
    if (lab_wanted(c.bench) && lab.forms[0])
        lab_print(&c, "latency", "us", values, lab.samples, well);
    return lab_end();
}
