/* lab: ranks=2,4,8 */
/* Blocking collectives; which ones, and what `bytes` means, is said in collectives.h. The time of one operation is
 * that of a sequence of them divided by their number, on the slowest rank; roots rotate. The cold form starts at 4
 * KB. Verified: all results on all ranks for 16 operations in a row, and that what is not to be received stays
 * untouched. */
#include "collectives.h"

LAB_SIZES(sizes, (0, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20),
          (0, 8, 1 << 10, 64 << 10, 4 << 20))

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

static double run(struct lab_case *c, long operations)
{
    const struct collective_arguments *a = c->more;
    int root = (int)(c->operation % lab.ranks);
    c->operation += operations;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        collectives[a->which].call(a, lab_send_slot(&c->pool, slot), lab_receive_slot(&c->pool, slot), root);
        if (++root == lab.ranks)
            root = 0;
    }
    return lab_now() - start;
}

int main(int argc, char **argv)
{
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    for (enum collective which = 0; which < COLLECTIVES; which++)
        LAB_EACH_FORM(cold) LAB_EACH_SIZE(bytes, sizes)
        {
            struct lab_case c = {
                .bench = collectives[which].bench, .form = lab_forms[cold], .bytes = *bytes, .run = run};
            struct collective_arguments a;
            if (!lab_wanted(c.bench) || (which == Barrier) != (*bytes == 0) || (cold && *bytes < 4 << 10))
                continue;
            if (collective_open(&c, &a, which, cold)) {
                collective_measure(&c);
                collective_close(&c, &a);
            }
        }
    return lab_end();
}
