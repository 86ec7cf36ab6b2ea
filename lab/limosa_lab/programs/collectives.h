/* The collectives that are measured: IMB's list for MPI-1. Their arguments, buffers and verification are written
 * once here for the blocking, non-blocking and persistent forms.
 *
 * What `bytes` means, as in IMB: the vector of a rank for Reduce, Allreduce, Reduce_scatter, Reduce_scatter_block,
 * Scan and Exscan; the message for Bcast; one block, of which a rank has as many as there are ranks, for the
 * gathering, scattering and all-to-all ones. Roots rotate from operation to operation, as in IMB. Reductions add
 * MPI_DOUBLE; whole numbers, so that sums are exact. Everything else carries MPI_BYTE. The forms with counts get
 * equal counts, except that Reduce_scatter divides what cannot be divided equally. */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include "lab.h"

/* The name as in MPI_Name and in MPI_Iname, and the arguments. Those that reduce come first, those without a root
 * have ROOTLESS. */
#define EACH_COLLECTIVE(DO)                                                                                            \
    DO(Reduce, reduce, to_root, out, in, a->elements, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD)                       \
    DO(Allreduce, allreduce, rootless, out, in, a->elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)                      \
    DO(Reduce_scatter, reduce_scatter, rootless, out, in, a->shares, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)              \
    DO(Reduce_scatter_block, reduce_scatter_block, rootless, out, in, a->shares[0], MPI_DOUBLE, MPI_SUM,               \
       MPI_COMM_WORLD)                                                                                                 \
    DO(Scan, scan, rootless, out, in, a->elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)                                \
    DO(Exscan, exscan, rootless, out, in, a->elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)                            \
    DO(Bcast, bcast, from_root, in, a->bytes, MPI_BYTE, root, MPI_COMM_WORLD)                                          \
    DO(Allgather, allgather, rootless, out, a->bytes, MPI_BYTE, in, a->bytes, MPI_BYTE, MPI_COMM_WORLD)                \
    DO(Allgatherv, allgatherv, rootless, out, a->bytes, MPI_BYTE, in, a->counts, a->places, MPI_BYTE, MPI_COMM_WORLD)  \
    DO(Gather, gather, to_root, out, a->bytes, MPI_BYTE, in, a->bytes, MPI_BYTE, root, MPI_COMM_WORLD)                 \
    DO(Gatherv, gatherv, to_root, out, a->bytes, MPI_BYTE, in, a->counts, a->places, MPI_BYTE, root, MPI_COMM_WORLD)   \
    DO(Scatter, scatter, from_root, out, a->bytes, MPI_BYTE, in, a->bytes, MPI_BYTE, root, MPI_COMM_WORLD)             \
    DO(Scatterv, scatterv, from_root, out, a->counts, a->places, MPI_BYTE, in, a->bytes, MPI_BYTE, root,               \
       MPI_COMM_WORLD)                                                                                                 \
    DO(Alltoall, alltoall, rootless, out, a->bytes, MPI_BYTE, in, a->bytes, MPI_BYTE, MPI_COMM_WORLD)                  \
    DO(Alltoallv, alltoallv, rootless, out, a->counts, a->places, MPI_BYTE, in, a->counts, a->places, MPI_BYTE,        \
       MPI_COMM_WORLD)                                                                                                 \
    DO(Barrier, barrier, rootless, MPI_COMM_WORLD)

enum collective {
#define DO(Name, name, direction, ...) Name,
    EACH_COLLECTIVE(DO)
#undef DO
        COLLECTIVES
};

enum { rootless, to_root, from_root };
static const int collective_direction[COLLECTIVES] = {
#define DO(Name, name, direction, ...) direction,
    EACH_COLLECTIVE(DO)
#undef DO
};

/* The arguments of one case; behind `more` of a lab_case. */
struct collective_arguments {
    enum collective which;
    int bytes, elements;
    int *counts, *places; /* blocks of `bytes` for every rank */
    int *shares;          /* elements for every rank of a scattered reduction */
    int first_element;    /* of this rank's share */
};

static inline bool reduces(enum collective which)
{
    return which <= Exscan;
}

static inline int *collective_integers(void)
{
    int *numbers = calloc((size_t)lab.ranks, sizeof *numbers);
    if (!numbers)
        lab_die("no memory for %d counts", lab.ranks);
    return numbers;
}

/* Fills in the arguments and opens the buffers; false when this size does not fit this collective or needs too much
 * memory. */
static inline bool collective_open(struct lab_case *c, struct collective_arguments *a, enum collective which, bool cold)
{
    size_t bytes = c->bytes, ranks = (size_t)lab.ranks, blocks = bytes * ranks;
    size_t sizes[COLLECTIVES][2] = {[Reduce] = {bytes, bytes},      [Allreduce] = {bytes, bytes},
                                    [Reduce_scatter] = {bytes, 0},  [Reduce_scatter_block] = {bytes, 0},
                                    [Scan] = {bytes, bytes},        [Exscan] = {bytes, bytes},
                                    [Bcast] = {0, bytes},           [Allgather] = {bytes, blocks},
                                    [Allgatherv] = {bytes, blocks}, [Gather] = {bytes, blocks},
                                    [Gatherv] = {bytes, blocks},    [Scatter] = {blocks, bytes},
                                    [Scatterv] = {blocks, bytes},   [Alltoall] = {blocks, blocks},
                                    [Alltoallv] = {blocks, blocks}};
    if (which == Reduce_scatter_block && bytes / sizeof(double) % ranks)
        return false;
    *a = (struct collective_arguments){.which = which, .bytes = (int)bytes, .elements = (int)(bytes / sizeof(double))};
    a->counts = collective_integers();
    a->places = collective_integers();
    a->shares = collective_integers();
    for (int rank = 0; rank < lab.ranks; rank++) {
        a->counts[rank] = a->bytes;
        a->places[rank] = rank * a->bytes;
        a->shares[rank] = a->elements / lab.ranks + (rank < a->elements % lab.ranks);
        a->first_element += rank < lab.rank ? a->shares[rank] : 0;
    }
    if (which == Reduce_scatter || which == Reduce_scatter_block)
        sizes[which][1] = (size_t)a->shares[0] * sizeof(double);
    c->more = a;
    return lab_pool_open(&c->pool, sizes[which][0], sizes[which][1], cold);
}

static inline void collective_close(struct lab_case *c, struct collective_arguments *a)
{
    if (c->pool.memory)
        lab_pool_close(&c->pool);
    free(a->counts);
    free(a->places);
    free(a->shares);
    *a = (struct collective_arguments){0};
}

/* --- verification ------------------------------------------------------------------------------------------------- */

/* In a verification, operation number i uses slot i. */
static inline int collective_root(size_t slot)
{
    return (int)(slot % (size_t)lab.ranks);
}

/* Element `at` of the sum over the vectors of the first `ranks` ranks. */
static inline double collective_sum(int ranks, size_t at, size_t message)
{
    return ranks * (ranks + 1) / 2.0 * (double)(1 + at % 1021) + 7.0 * ranks * (double)message;
}

static inline void collective_fill(struct lab_case *c, size_t slot, size_t message)
{
    const struct collective_arguments *a = c->more;
    char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
    int root = collective_root(slot);
    memset(in, LAB_UNRECEIVED, c->pool.receive_bytes);
    if (reduces(a->which)) {
        double *numbers = (double *)(void *)out;
        for (size_t i = 0; i < (size_t)a->elements; i++)
            numbers[i] = collective_sum(lab.rank + 1, i, message) - collective_sum(lab.rank, i, message);
    } else if (a->which == Bcast) {
        if (lab.rank == root)
            lab_fill(in, c->bytes, lab_key(root, -1, message));
    } else if (a->which == Allgather || a->which == Allgatherv || a->which == Gather || a->which == Gatherv) {
        lab_fill(out, c->bytes, lab_key(lab.rank, -1, message));
    } else {
        for (int to = 0; to < lab.ranks; to++)
            lab_fill(out + (size_t)to * c->bytes, c->bytes, lab_key(lab.rank, to, message));
    }
}

static inline bool collective_check_sum(const char *in, int ranks, size_t first, size_t elements, size_t message)
{
    const double *numbers = (const double *)(const void *)in;
    for (size_t i = 0; i < elements; i++) {
        double expected = collective_sum(ranks, first + i, message);
        if (numbers[i] == expected)
            continue;
        fprintf(stderr, "%s: rank %d: element %zu is %g and should be %g\n", lab.program, lab.rank, first + i,
                numbers[i], expected);
        return false;
    }
    return true;
}

static inline bool collective_check(struct lab_case *c, size_t slot, size_t message)
{
    const struct collective_arguments *a = c->more;
    const char *in = lab_receive_slot(&c->pool, slot);
    int root = collective_root(slot), direction = collective_direction[a->which];
    bool well = true;
    if ((direction == to_root && lab.rank != root) || (a->which == Exscan && lab.rank == 0))
        return lab_untouched(in, c->pool.receive_bytes, LAB_UNRECEIVED);
    if (a->which == Reduce_scatter || a->which == Reduce_scatter_block) {
        size_t mine = (size_t)a->shares[lab.rank];
        return collective_check_sum(in, lab.ranks, (size_t)a->first_element, mine, message) &&
               lab_untouched(in + mine * sizeof(double), c->pool.receive_bytes - mine * sizeof(double), LAB_UNRECEIVED);
    }
    if (reduces(a->which)) {
        int added = a->which == Scan ? lab.rank + 1 : a->which == Exscan ? lab.rank : lab.ranks;
        return collective_check_sum(in, added, 0, (size_t)a->elements, message);
    }
    if (direction == from_root)
        return lab_check(in, c->bytes, lab_key(root, a->which == Bcast ? -1 : lab.rank, message));
    for (int from = 0; well && from < lab.ranks; from++) {
        int to = a->which == Alltoall || a->which == Alltoallv ? lab.rank : -1;
        well = lab_check(in + (size_t)from * c->bytes, c->bytes, lab_key(from, to, message));
    }
    return well;
}

/* Does no rank leave a barrier before the last has entered? Tried with some ranks late by turns. */
static inline bool collective_barrier_holds(struct lab_case *c)
{
    bool well = true;
    for (int late = 0; late < lab.ranks && late < 4; late++) {
        if (lab.rank == late)
            lab_sleep(0.002);
        double entered = lab_now(), last;
        c->run(c, 1);
        double left = lab_now();
        MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        well = well && left >= last;
    }
    return lab_right(well);
}

/* Measures one case whose buffers are open, and prints it. */
static inline void collective_measure(struct lab_case *c)
{
    static struct lab_samples samples;
    const struct collective_arguments *a = c->more;
    c->fill = a->which == Barrier ? NULL : collective_fill;
    c->check = a->which == Barrier ? NULL : collective_check;
    lab_measure(c, &samples);
    if (a->which == Barrier)
        samples.verified = collective_barrier_holds(c) && samples.verified;
    lab_print_times(c, &samples, "latency", "us", 1e6);
}

#endif
