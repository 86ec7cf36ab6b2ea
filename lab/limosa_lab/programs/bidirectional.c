/* lab: ranks=2 */
/* Bidirectional bandwidth: each rank posts 16 receives and starts 16 sends, then waits for all. The bytes of both
 * directions count. Verified: all bytes of every message of the window, in both directions. */
#include "lab.h"

enum { WINDOW = 16 };

LAB_SIZES(sizes,
          (64, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20,
           4 << 20),
          (1 << 10, 64 << 10, 1 << 20))

static double run(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    MPI_Request requests[2 * WINDOW];
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        for (int w = 0; w < WINDOW; w++)
            MPI_Irecv(in + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[w]);
        lab_to_send(c, out, WINDOW * c->bytes);
        for (int w = 0; w < WINDOW; w++)
            MPI_Isend(out + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[WINDOW + w]);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    return lab_now() - start;
}

int main(int argc, char **argv)
{
    static struct lab_samples samples;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    LAB_EACH_FORM_AND_FRESH(form) LAB_EACH_SIZE(bytes, sizes)
    {
        struct lab_case c = {
            .bench = "bidirectional", .form = lab_forms[form], .bytes = *bytes, .x = "{\"window\":16}", .run = run};
        if (!lab_wanted(c.bench))
            continue;
        c.peer = 1 - lab.rank;
        c.fresh = form == LAB_FRESH;
        c.fill = lab_fill_pair;
        c.check = lab_check_pair;
        if (!lab_pool_open(&c.pool, WINDOW * *bytes, WINDOW * *bytes, form == LAB_COLD))
            continue;
        lab_measure(&c, &samples);
        lab_print_rates(&c, &samples, "bandwidth", "MB/s", 2e-6 * WINDOW * (double)*bytes);
        lab_pool_close(&c.pool);
    }
    return lab_end();
}
