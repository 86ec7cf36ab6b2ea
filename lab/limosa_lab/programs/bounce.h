/* Two processes bounce a flag: a number that each writes to a cache line of its own and its partner waits for. No MPI
 * is involved.
 *
 * The parent calls `bounce_start`, then `bounce` as often as it likes, then `bounce_end`. Both processes spin, so
 * that each needs a processor of its own. */
#ifndef BOUNCE_H
#define BOUNCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct bounce_lines {
    _Alignas(128) _Atomic uint64_t ping;
    _Alignas(128) _Atomic uint64_t pong;
};

struct bounce {
    struct bounce_lines *lines;
    pid_t child;
    bool well; /* the numbers have arrived in order, none was left out */
};

/* Binds a process to the processor with this number among those that it may use. */
static inline bool bounce_bind(pid_t process, int number)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all))
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0) {
            CPU_SET(cpu, &one);
            return sched_setaffinity(process, sizeof one, &one) == 0;
        }
    return false;
}

static inline double bounce_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void bounce_answer(struct bounce_lines *lines)
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

/* Starts the second process. */
static inline bool bounce_start(struct bounce *b)
{
    b->lines = mmap(NULL, sizeof *b->lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    b->well = true;
    if (b->lines == MAP_FAILED)
        return false;
    b->child = fork();
    if (b->child == 0)
        bounce_answer(b->lines);
    return b->child > 0;
}

/* Seconds for one way, the mean of so many turns. */
static inline double bounce(struct bounce *b, long times)
{
    uint64_t number = atomic_load_explicit(&b->lines->ping, memory_order_relaxed);
    double start = bounce_now();
    for (long i = 0; i < times; i++) {
        uint64_t seen;
        atomic_store_explicit(&b->lines->ping, ++number, memory_order_release);
        while ((seen = atomic_load_explicit(&b->lines->pong, memory_order_acquire)) < number)
            ;
        b->well = b->well && seen == number;
    }
    return (bounce_now() - start) / (double)times / 2;
}

static inline void bounce_end(struct bounce *b)
{
    atomic_store(&b->lines->ping, UINT64_MAX);
    waitpid(b->child, NULL, 0);
}

#endif
