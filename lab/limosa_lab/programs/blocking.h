/* The blocking collectives as functions of the same form, and a sequence of calls of one of them. */
#ifndef BLOCKING_H
#define BLOCKING_H

#include "collectives.h"

/* One call of each. */
#define DO(Name, name, direction, ...)                                                                                 \
    static void call_##name(const struct collective_arguments *a, void *out, void *in, int root)                       \
    {                                                                                                                  \
        (void)a, (void)out, (void)in, (void)root;                                                                      \
        MPI_##Name(__VA_ARGS__);                                                                                       \
    }
EACH_COLLECTIVE(DO)
#undef DO

static const struct {
    const char *bench;
    void (*call)(const struct collective_arguments *, void *out, void *in, int root);
} collectives[COLLECTIVES] = {
#define DO(Name, name, direction, ...) {#name, call_##name},
    EACH_COLLECTIVE(DO)
#undef DO
};

/* Is rank 0 the root of each call? Otherwise roots take turns. */
static bool is_root_fixed;

/* A sequence of calls; gives the seconds it took. */
static double collective_run(struct lab_case *c, long operations)
{
    const struct collective_arguments *a = c->more;
    int root = is_root_fixed ? 0 : (int)(c->operation % lab.ranks);
    c->operation += operations;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        collectives[a->which].call(a, lab_send_slot(&c->pool, slot), lab_receive_slot(&c->pool, slot), root);
        if (!is_root_fixed && ++root == lab.ranks)
            root = 0;
    }
    return lab_now() - start;
}

#endif
