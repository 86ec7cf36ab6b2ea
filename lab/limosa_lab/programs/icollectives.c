/* lab: ranks=2,4,8 */
/* Non-blocking collectives (start and wait at once: `ibcast`) and persistent ones (start and wait, made beforehand:
 * `bcast_init`); which ones, and what `bytes` means, is said in collectives.h. Only the hot form. A persistent
 * collective with a root is made once per root, and roots rotate. Verified: as the blocking ones. */
#include "collectives.h"

LAB_SIZES(sizes, (0, 8, 256, 4 << 10, 64 << 10, 1 << 20, 4 << 20), (0, 8, 64 << 10, 1 << 20))

#ifdef LAB_PERSISTENT_COLLECTIVES
#define MAKE(Name, ...) MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, request)
#else
#define MAKE(Name, ...) (void)request
#endif

/* One start, or making, of each. */
#define DO(Name, name, direction, ...)                                                                                 \
    static void start_##name(const struct collective_arguments *a, void *out, void *in, int root,                      \
                             MPI_Request *request)                                                                     \
    {                                                                                                                  \
        (void)a, (void)out, (void)in, (void)root;                                                                      \
        MPI_I##name(__VA_ARGS__, request);                                                                             \
    }                                                                                                                  \
    static void make_##name(const struct collective_arguments *a, void *out, void *in, int root, MPI_Request *request) \
    {                                                                                                                  \
        (void)a, (void)out, (void)in, (void)root;                                                                      \
        MAKE(Name, __VA_ARGS__);                                                                                       \
    }
EACH_COLLECTIVE(DO)
#undef DO

static const struct {
    const char *nonblocking, *persistent;
    void (*start)(const struct collective_arguments *, void *out, void *in, int root, MPI_Request *);
    void (*make)(const struct collective_arguments *, void *out, void *in, int root, MPI_Request *);
} collectives[COLLECTIVES] = {
#define DO(Name, name, direction, ...) {"i" #name, #name "_init", start_##name, make_##name},
    EACH_COLLECTIVE(DO)
#undef DO
};

static double run_nonblocking(struct lab_case *c, long operations)
{
    const struct collective_arguments *a = c->more;
    int root = (int)(c->operation % lab.ranks);
    c->operation += operations;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        MPI_Request request;
        size_t slot = lab_next(&c->pool);
        collectives[a->which].start(a, lab_send_slot(&c->pool, slot), lab_receive_slot(&c->pool, slot), root, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (++root == lab.ranks)
            root = 0;
    }
    return lab_now() - start;
}

/* The persistent requests of the present case: in a verification, where there are several slots, one for each; else
 * one for each root. */
static struct {
    MPI_Request *requests; /* NULL: none */
    size_t count, slots;
} made;

static void free_requests(void)
{
    for (size_t i = 0; i < made.count; i++)
        MPI_Request_free(&made.requests[i]);
    free(made.requests);
    made.requests = NULL;
    made.count = 0;
}

static void make_requests(struct lab_case *c)
{
    const struct collective_arguments *a = c->more;
    free_requests();
    made.slots = c->pool.slots;
    made.count = made.slots > 1 || collective_direction[a->which] == rootless ? made.slots : (size_t)lab.ranks;
    made.requests = malloc(made.count * sizeof *made.requests);
    if (!made.requests)
        lab_die("no memory for %zu requests", made.count);
    for (size_t i = 0; i < made.count; i++) {
        size_t slot = i & (made.slots - 1);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        collectives[a->which].make(a, out, in, collective_root(i), &made.requests[i]);
    }
}

static double run_persistent(struct lab_case *c, long operations)
{
    size_t next = 0;
    if (!made.requests || made.slots != c->pool.slots)
        make_requests(c);
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        MPI_Start(&made.requests[next]);
        MPI_Wait(&made.requests[next], MPI_STATUS_IGNORE);
        if (++next == made.count)
            next = 0;
    }
    return lab_now() - start;
}

int main(int argc, char **argv)
{
    bool forms = true;
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
#ifndef LAB_PERSISTENT_COLLECTIVES
    forms = false;
#endif
    for (enum collective which = 0; lab.forms[0] && which < COLLECTIVES; which++)
        for (int persistent = 0; persistent <= forms; persistent++)
            LAB_EACH_SIZE(bytes, sizes)
            {
                struct lab_case c = {.form = "hot", .bytes = *bytes};
                struct collective_arguments a;
                c.bench = persistent ? collectives[which].persistent : collectives[which].nonblocking;
                c.run = persistent ? run_persistent : run_nonblocking;
                if (!lab_wanted(c.bench) || (which == Barrier) != (*bytes == 0))
                    continue;
                if (collective_open(&c, &a, which, false)) {
                    collective_measure(&c);
                    free_requests();
                    collective_close(&c, &a);
                }
            }
    return lab_end();
}
