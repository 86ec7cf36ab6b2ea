/* lab: ranks=2 */
/* Ping-pong: a message goes there and back; half of that time is the latency. Separate send and receive buffers.
 * Verified: all bytes of the messages in both directions. */
#include "lab.h"

LAB_SIZES(sizes,
          (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
           128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20),
          (0, 8, 1 << 10, 64 << 10, 1 << 20, 4 << 20))

int main(int argc, char **argv)
{
    static struct lab_samples samples;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    LAB_EACH_FORM_AND_FRESH(form) LAB_EACH_SIZE(bytes, sizes)
    {
        struct lab_case c = {
            .bench = "pingpong", .form = lab_forms[form], .bytes = *bytes, .run = lab_ping_pong, .peer = 1 - lab.rank};
        if (!lab_wanted(c.bench) || (form != LAB_HOT && !*bytes))
            continue;
        c.fresh = form == LAB_FRESH;
        c.fill = lab_fill_pair;
        c.check = lab_check_pair;
        lab_pool_open(&c.pool, *bytes, *bytes, form == LAB_COLD);
        lab_measure(&c, &samples);
        lab_print_times(&c, &samples, "latency", "us", 0.5e6);
        if (*bytes >= 4 << 10)
            lab_print_rates(&c, &samples, "bandwidth", "MB/s", 2e-6 * (double)*bytes);
        lab_pool_close(&c.pool);
    }
    return lab_end();
}
