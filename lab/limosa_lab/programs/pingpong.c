/* lab: ranks=2 */
/* Ping-pong: a message goes there and back; half of that time is the latency. Separate send and receive buffers.
 * Verified: all bytes of the messages in both directions. */
#include "lab.h"

LAB_SIZES(sizes,
          (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
           128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20),
          (0, 8, 1 << 10, 64 << 10, 1 << 20, 4 << 20))

static double run(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        if (lab.rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD);
        }
    }
    return lab_now() - start;
}

int main(int argc, char **argv)
{
    static struct lab_samples samples;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    LAB_EACH_FORM(cold) LAB_EACH_SIZE(bytes, sizes)
    {
        struct lab_case c = {
            .bench = "pingpong", .form = lab_forms[cold], .bytes = *bytes, .run = run, .peer = 1 - lab.rank};
        if (!lab_wanted(c.bench) || (cold && !*bytes))
            continue;
        c.fill = lab_fill_pair;
        c.check = lab_check_pair;
        lab_pool_open(&c.pool, *bytes, *bytes, cold);
        lab_measure(&c, &samples);
        lab_print_times(&c, &samples, "latency", "us", 0.5e6);
        if (*bytes >= 4 << 10)
            lab_print_rates(&c, &samples, "bandwidth", "MB/s", 2e-6 * (double)*bytes);
        lab_pool_close(&c.pool);
    }
    return lab_end();
}
