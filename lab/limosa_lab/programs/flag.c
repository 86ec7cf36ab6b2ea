/* lab: ranks=1 */
/* The floor under every message in shared memory: two processes bounce a flag (bounce.h). No MPI is involved: it is
 * measured between a parent and its child before MPI_Init. `latency` is one way. Only the hot form. Verified: the
 * numbers arrive in order and none is left out. */
#include "lab.h"
#include "bounce.h"

/* Lets both processes run on every processor: a launcher may have bound this one to a single core. Gives the number
 * of processors. */
static int unbind(void)
{
    cpu_set_t set;
    memset(&set, 0xff, sizeof set);
    sched_setaffinity(0, sizeof set, &set);
    return sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
    static double values[LAB_MAX_SAMPLES];
    struct lab_case c = {.bench = "flag", .form = "hot", .bytes = 8};
    struct bounce b = {0};
    bool measured = !lab_options(argc, argv) && unbind() >= 2 && bounce_start(&b);
    if (measured) {
        long times = (long)(0.005 / 2 / bounce(&b, 10000)) + 1;
        bounce(&b, times);
        for (int i = 0; i < lab.samples; i++)
            values[i] = bounce(&b, times) * 1e6;
        bounce_end(&b);
    }
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    if (!measured)
        lab_refuse("needs two processors and a second process");
    bool well = lab_right(b.well);
    if (lab_wanted(c.bench) && lab.forms[0])
        lab_print(&c, "latency", "us", values, lab.samples, well);
    return lab_end();
}
