/* lab: ranks=2,4,8 even */
/* Pairs at work at the same time: rank i of the first half with rank i + n/2. Ping-pong (the slowest pair counts)
 * and message rate with a window of 64 (the messages of all pairs count). Verified: all bytes of every message of
 * every pair. */
#include "lab.h"

enum { WINDOW = 64 };

LAB_SIZES(pingpong_sizes, (8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20), (8, 4 << 10, 1 << 20))
LAB_SIZES(rate_sizes, (8, 64, 512, 4 << 10, 32 << 10), (8, 4 << 10))

static bool first_half(void)
{
    return lab.rank < lab.ranks / 2;
}

static double run_rate(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    char answer = 0;
    MPI_Request requests[WINDOW];
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        char *out = lab_send_slot(&c->pool, slot), *in = lab_receive_slot(&c->pool, slot);
        for (int w = 0; w < WINDOW; w++)
            if (first_half())
                MPI_Isend(out + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[w]);
            else
                MPI_Irecv(in + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[w]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (first_half())
            MPI_Recv(&answer, 1, MPI_BYTE, c->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_BYTE, c->peer, 2, MPI_COMM_WORLD);
    }
    return lab_now() - start;
}

int main(int argc, char **argv)
{
    static struct lab_samples samples;
    lab_start(argc, argv, MPI_THREAD_SINGLE, 2);
    int half = lab.ranks / 2, peer = first_half() ? lab.rank + half : lab.rank - half;
    LAB_EACH_FORM(cold)
    {
        struct lab_case c = {.form = lab_forms[cold], .peer = peer, .fill = lab_fill_pair};
        LAB_EACH_SIZE(bytes, pingpong_sizes)
        {
            c.bench = "multipair_pingpong";
            c.bytes = *bytes;
            c.run = lab_ping_pong;
            c.check = lab_check_pair;
            if (!lab_wanted(c.bench) || !lab_pool_open(&c.pool, *bytes, *bytes, cold))
                continue;
            lab_measure(&c, &samples);
            lab_print_times(&c, &samples, "latency", "us", 0.5e6);
            lab_pool_close(&c.pool);
        }
        LAB_EACH_SIZE(bytes, rate_sizes)
        {
            c.bench = "multipair_rate";
            c.bytes = *bytes;
            c.run = run_rate;
            c.check = first_half() ? NULL : lab_check_pair;
            if (!lab_wanted(c.bench) || !lab_pool_open(&c.pool, WINDOW * *bytes, WINDOW * *bytes, cold))
                continue;
            lab_measure(&c, &samples);
            lab_print_rates(&c, &samples, "rate", "messages/s", (double)WINDOW * half);
            lab_pool_close(&c.pool);
        }
    }
    return lab_end();
}
