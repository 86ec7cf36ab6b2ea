/* lab: ranks=2 */
/* Message rate: rank 0 starts 64 sends, rank 1 has 64 receives posted; when all are done a short answer goes back.
 * The messages of a window lie side by side in memory. Verified: all bytes of every message of the window. */
#include "lab.h"

enum { WINDOW = 64 };

LAB_SIZES(sizes, (8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10),
          (8, 1 << 10, 64 << 10))

static double run(struct lab_case *c, long operations)
{
    int bytes = (int)c->bytes;
    char answer = 0;
    MPI_Request requests[WINDOW];
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        if (lab.rank == 0) {
            char *out = lab_send_slot(&c->pool, slot);
            for (int w = 0; w < WINDOW; w++)
                MPI_Isend(out + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[w]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Recv(&answer, 1, MPI_BYTE, c->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            char *in = lab_receive_slot(&c->pool, slot);
            for (int w = 0; w < WINDOW; w++)
                MPI_Irecv(in + w * c->bytes, bytes, MPI_BYTE, c->peer, 1, MPI_COMM_WORLD, &requests[w]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Send(&answer, 1, MPI_BYTE, c->peer, 2, MPI_COMM_WORLD);
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
            .bench = "rate", .form = lab_forms[cold], .bytes = *bytes, .x = "{\"window\":64}", .run = run};
        if (!lab_wanted(c.bench))
            continue;
        c.peer = 1 - lab.rank;
        c.fill = lab_fill_pair;
        c.check = lab.rank == 1 ? lab_check_pair : NULL;
        lab_pool_open(&c.pool, WINDOW * *bytes, WINDOW * *bytes, cold);
        lab_measure(&c, &samples);
        lab_print_rates(&c, &samples, "rate", "messages/s", WINDOW);
        if (*bytes >= 4 << 10)
            lab_print_rates(&c, &samples, "bandwidth", "MB/s", 1e-6 * WINDOW * (double)*bytes);
        lab_pool_close(&c.pool);
    }
    return lab_end();
}
