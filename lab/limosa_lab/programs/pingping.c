/* lab: ranks=2 */
/* Ping-ping: both ranks send at the same time and then receive, so that each message is obstructed by the one coming
 * towards it. Verified: all bytes of the messages in both directions. */
#include "lab.h"

LAB_SIZES(sizes,
          (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
           128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20),
          (8, 1 << 10, 64 << 10, 4 << 20))

static double run(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        MPI_Request sending;
        size_t slot = lab_next(&c->pool);
        char *out = lab_to_send(c, lab_send_slot(&c->pool, slot), c->bytes);
        MPI_Isend(out, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &sending);
        MPI_Recv(lab_receive_slot(&c->pool, slot), bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
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
            .bench = "pingping", .form = lab_forms[form], .bytes = *bytes, .run = run, .peer = 1 - lab.rank};
        if (!lab_wanted(c.bench) || (form != LAB_HOT && !*bytes))
            continue;
        c.fresh = form == LAB_FRESH;
        c.fill = lab_fill_pair;
        c.check = lab_check_pair;
        lab_pool_open(&c.pool, *bytes, *bytes, form == LAB_COLD);
        lab_measure(&c, &samples);
        lab_print_times(&c, &samples, "latency", "us", 1e6);
        lab_pool_close(&c.pool);
    }
    return lab_end();
}
