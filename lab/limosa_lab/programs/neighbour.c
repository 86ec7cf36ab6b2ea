/* lab: ranks=4,8 */
/* Neighbourhood collectives on a periodic grid of two dimensions, where each rank has four neighbours: blocking
 * (`neighbor_alltoall`), non-blocking with start and wait at once (`ineighbor_alltoall`), and persistent
 * (`neighbor_alltoall_init`); the same for allgather. `bytes`: one block. Only the hot form. Verified: all bytes. */
#include "lab.h"

LAB_SIZES(sizes, (8, 256, 4 << 10, 64 << 10, 1 << 20), (8, 4 << 10, 1 << 20))

enum { NEIGHBOURS = 4 };
enum form { Blocking, Nonblocking, Persistent, FORMS };

static MPI_Comm grid;
static int neighbours[NEIGHBOURS];

struct work {
    enum form form;
    bool alltoall;
    int bytes;
};

/* --- persistent requests: one for each slot ----------------------------------------------------------------------- */

static MPI_Request requests[LAB_CHECKED];
static size_t made;

static void free_requests(void)
{
    while (made)
        MPI_Request_free(&requests[--made]);
}

static void make_requests(struct lab_case *c)
{
#ifdef LAB_PERSISTENT_COLLECTIVES
    const struct work *w = c->more;
    free_requests();
    for (; made < c->pool.slots; made++) {
        char *out = lab_send_slot(&c->pool, made), *in = lab_receive_slot(&c->pool, made);
        if (w->alltoall)
            MPI_Neighbor_alltoall_init(out, w->bytes, MPI_BYTE, in, w->bytes, MPI_BYTE, grid, MPI_INFO_NULL,
                                       &requests[made]);
        else
            MPI_Neighbor_allgather_init(out, w->bytes, MPI_BYTE, in, w->bytes, MPI_BYTE, grid, MPI_INFO_NULL,
                                        &requests[made]);
    }
#else
    (void)c;
#endif
}

/* --- the operations ----------------------------------------------------------------------------------------------- */

static void exchange(const struct work *w, size_t slot, char *out, char *in)
{
    MPI_Request request;
    int n = w->bytes;
    if (w->form == Blocking) {
        if (w->alltoall)
            MPI_Neighbor_alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, grid);
        else
            MPI_Neighbor_allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, grid);
    } else if (w->form == Nonblocking) {
        if (w->alltoall)
            MPI_Ineighbor_alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, grid, &request);
        else
            MPI_Ineighbor_allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, grid, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Start(&requests[slot]);
        MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    }
}

static double run(struct lab_case *c, long operations)
{
    const struct work *w = c->more;
    if (w->form == Persistent && made != c->pool.slots)
        make_requests(c);
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        exchange(w, slot, lab_send_slot(&c->pool, slot), lab_receive_slot(&c->pool, slot));
    }
    return lab_now() - start;
}

static void fill(struct lab_case *c, size_t slot, size_t message)
{
    const struct work *w = c->more;
    char *out = lab_send_slot(&c->pool, slot);
    for (int block = 0; block < (w->alltoall ? NEIGHBOURS : 1); block++)
        lab_fill(out + block * w->bytes, (size_t)w->bytes, lab_key(lab.rank, block, message));
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->pool.receive_bytes);
}

/* What comes from one direction was sent in the opposite one. Where both lead to the same rank, some libraries give the
 * blocks in the other order (MPI-4.1 says which; older versions did not), which costs the same. */
static bool check(struct lab_case *c, size_t slot, size_t message)
{
    const struct work *w = c->more;
    bool well = true;
    for (int block = 0; block < NEIGHBOURS; block++) {
        const char *in = lab_receive_slot(&c->pool, slot) + block * w->bytes;
        int sent = w->alltoall ? block ^ 1 : 0;
        uint64_t first = lab_word(lab_key(neighbours[block], block, message), 0);
        if (w->alltoall && neighbours[block] == neighbours[block ^ 1] && !memcmp(in, &first, sizeof first))
            sent = block;
        well = well && lab_check(in, (size_t)w->bytes, lab_key(neighbours[block], sent, message));
    }
    return well;
}

static void measure(const char *bench, struct work w)
{
    static struct lab_samples samples;
    struct lab_case c = {.bench = bench, .form = "hot", .bytes = (size_t)w.bytes, .run = run, .fill = fill};
    size_t block = (size_t)w.bytes;
    if (!lab_wanted(bench))
        return;
    c.check = check;
    c.more = &w;
    if (!lab_pool_open(&c.pool, w.alltoall ? NEIGHBOURS * block : block, NEIGHBOURS * block, false))
        return;
    lab_measure(&c, &samples);
    lab_print_times(&c, &samples, "time", "us", 1e6);
    free_requests();
    lab_pool_close(&c.pool);
}

int main(int argc, char **argv)
{
    static const char *const names[2][FORMS] = {
        {"neighbor_allgather", "ineighbor_allgather", "neighbor_allgather_init"},
        {"neighbor_alltoall", "ineighbor_alltoall", "neighbor_alltoall_init"}};
    int extents[2] = {0, 0}, forms = FORMS;
    lab_start(argc, argv, MPI_THREAD_SINGLE, 4);
#ifndef LAB_PERSISTENT_COLLECTIVES
    forms = Persistent;
#endif
    MPI_Dims_create(lab.ranks, 2, extents);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, (int[]){1, 1}, 0, &grid);
    for (int dimension = 0; dimension < 2; dimension++)
        MPI_Cart_shift(grid, dimension, 1, &neighbours[2 * dimension], &neighbours[2 * dimension + 1]);
    for (int alltoall = 0; lab.forms[0] && alltoall < 2; alltoall++)
        for (int form = 0; form < forms; form++)
            LAB_EACH_SIZE(bytes, sizes)
            {
                measure(names[alltoall][form],
                        (struct work){.form = (enum form)form, .alltoall = alltoall, .bytes = (int)*bytes});
            }
    MPI_Comm_free(&grid);
    return lab_end();
}
