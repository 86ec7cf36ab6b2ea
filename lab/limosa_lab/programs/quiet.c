/* lab: ranks=2,8 */
/* What waiting costs. Rank 0 sleeps for some seconds, outside MPI, while all others are blocked:
 *   quiet_recv     in MPI_Recv
 *   quiet_barrier  in MPI_Barrier
 * Metrics, over all blocked ranks: `cpu`, processors used (seconds of processor time in a second), and `switches`,
 * how often per second they gave the processor up of their own accord, which counts their wake-ups.
 *
 *   quiet_wakeup   (2 ranks) rank 0 sends 8 bytes, the present time, to a rank that has been blocked for 20 ms;
 *                  `wakeup` is how old that time is when MPI_Recv returns.
 *
 * Verified: what is received. */
#include "lab.h"
#include <sys/resource.h>

struct usage {
    double wall, cpu, switches;
};

static struct usage usage(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec),
           microseconds = (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    return (struct usage){lab_now(), seconds + 1e-6 * microseconds, (double)u.ru_nvcsw};
}

static void blocked(const char *bench, bool in_barrier)
{
    struct lab_case c = {.bench = bench, .form = "hot"};
    double cpu[LAB_MAX_SAMPLES], switches[LAB_MAX_SAMPLES], seconds = lab.quick ? 1 : 3, mine[2] = {0, 0}, all[2];
    int samples = lab.samples < 3 ? lab.samples : lab.quick ? 1 : 3;
    bool well = true;
    if (!lab_wanted(bench))
        return;
    for (int i = 0; i < samples; i++) {
        int message = -1, sent = 1000 + i;
        MPI_Barrier(MPI_COMM_WORLD);
        if (lab.rank == 0)
            lab_sleep(seconds);
        struct usage before = usage();
        if (in_barrier)
            MPI_Barrier(MPI_COMM_WORLD);
        else if (lab.rank)
            MPI_Recv(&message, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            for (int to = 1; to < lab.ranks; to++)
                MPI_Send(&sent, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        struct usage after = usage();
        if (lab.rank) {
            mine[0] = (after.cpu - before.cpu) / (after.wall - before.wall);
            mine[1] = (after.switches - before.switches) / (after.wall - before.wall);
            well = well && (in_barrier || message == sent);
        }
        MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        cpu[i] = all[0];
        switches[i] = all[1];
    }
    well = lab_right(well);
    lab_print(&c, "cpu", "processors", cpu, samples, well);
    lab_print(&c, "switches", "Hz", switches, samples, well);
}

static void wakeup(void)
{
    struct lab_case c = {.bench = "quiet_wakeup", .form = "hot", .bytes = 8};
    double ages[LAB_MAX_SAMPLES];
    int samples = lab.quick ? 20 : 100;
    bool well = true;
    if (!lab_wanted(c.bench))
        return;
    for (int i = -3; i < samples; i++) { /* the first three warm up */
        double time = -1;
        if (lab.rank == 0) {
            lab_sleep(0.02);
            time = lab_now();
            MPI_Send(&time, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
        } else {
            double start = lab_now();
            MPI_Recv(&time, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double now = lab_now();
            well = well && time > start && time < now;
            ages[i < 0 ? 0 : i] = (now - time) * 1e6;
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    well = lab_right(well);
    if (lab.rank == 1)
        MPI_Send(ages, samples, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(ages, samples, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    lab_print(&c, "wakeup", "us", ages, samples, well);
}

int main(int argc, char **argv)
{
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    if (lab.ranks < 2)
        lab_refuse("runs with 2 ranks or more, this job has 1");
    if (lab.forms[0]) {
        blocked("quiet_recv", false);
        blocked("quiet_barrier", true);
        if (lab.ranks == 2)
            wakeup();
    }
    return lab_end();
}
