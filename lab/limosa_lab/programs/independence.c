/* lab: ranks=2 */
/* Does a partner that computes delay the other one? Each case is measured undisturbed (both ranks are in MPI) and
 * disturbed (rank 0 computes for 50 ms without calling MPI):
 *   independence_send        rank 0 has posted a receive and computes; the time of MPI_Send on rank 1
 *   independence_receive     rank 0 has started a send and computes; the time of MPI_Recv on rank 1
 *   independence_iallreduce  both start it, rank 0 then computes; the time of start and wait on rank 1
 *   independence_ibcast      rank 0 is the root, starts it and computes; the time of start and wait on rank 1
 * Metrics: undisturbed and disturbed time; `ratio`, each disturbed time by the median undisturbed one. Only the hot
 * form. Verified: all bytes of every message. */
#include "lab.h"

LAB_SIZES(sizes, (64 << 10, 1 << 20, 4 << 20), (4 << 20))
LAB_SIZES(allreduce_sizes, (8, 64 << 10, 4 << 20), (8, 4 << 20))

#define COMPUTING 0.05 /* seconds */

static void *buffer, *result;

static void compute(bool disturb)
{
    if (disturb)
        lab_compute_for(COMPUTING);
}

/* Rank 1 is about to begin: rank 0 has had the time to start its part and to compute. Asleep, so that it takes no
 * processor. */
static void let_partner_start(void)
{
    lab_sleep(0.003);
}

/* Each of these gives the time that rank 1 needed. Rank 0 has its part started when it leaves, or shortly after, the
 * barrier. */

static double send(size_t bytes, bool disturb)
{
    double start;
    MPI_Request request;
    if (lab.rank == 0) {
        MPI_Irecv(result, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        compute(disturb);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    let_partner_start();
    start = lab_now();
    MPI_Send(buffer, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    return lab_now() - start;
}

static double receive(size_t bytes, bool disturb)
{
    double start;
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    if (lab.rank == 0) {
        MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        compute(disturb);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return 0;
    }
    let_partner_start();
    start = lab_now();
    MPI_Recv(result, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return lab_now() - start;
}

static double iallreduce(size_t bytes, bool disturb)
{
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    if (lab.rank == 1)
        let_partner_start();
    double start = lab_now();
    MPI_Iallreduce(buffer, result, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (lab.rank == 0)
        compute(disturb);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return lab.rank == 1 ? lab_now() - start : 0;
}

static double ibcast(size_t bytes, bool disturb)
{
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    if (lab.rank == 1)
        let_partner_start();
    double start = lab_now();
    MPI_Ibcast(lab.rank == 0 ? buffer : result, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    if (lab.rank == 0)
        compute(disturb);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return lab.rank == 1 ? lab_now() - start : 0;
}

/* The pattern of try number `number`; whole numbers for the reduction. */
static void fill(size_t bytes, bool reduces, int number)
{
    memset(result, LAB_UNRECEIVED, bytes);
    if (!reduces)
        lab_fill(buffer, bytes, lab_key(lab.rank, -1, (size_t)number));
    for (size_t i = 0; reduces && i < bytes / sizeof(double); i++)
        ((double *)buffer)[i] = (double)((lab.rank + 1) * ((int)(i % 1021) + number));
}

static bool check(size_t bytes, bool reduces, int receiver, int number)
{
    if (!reduces)
        return lab.rank != receiver || lab_check(result, bytes, lab_key(1 - receiver, -1, (size_t)number));
    for (size_t i = 0; i < bytes / sizeof(double); i++)
        if (((double *)result)[i] != 3.0 * ((int)(i % 1021) + number))
            return false;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *bench, double (*once)(size_t, bool), size_t bytes, int receiver)
{
    static double times[2][LAB_MAX_SAMPLES], sorted[LAB_MAX_SAMPLES];
    struct lab_case c = {.bench = bench, .form = "hot", .bytes = bytes};
    bool well = true, reduces = once == iallreduce;
    for (int disturb = 0; disturb < 2; disturb++)
        for (int number = -2; number < lab.samples; number++) { /* the first two warm up */
            fill(bytes, reduces, number + 2);
            double mine = once(bytes, disturb), time;
            well = well && check(bytes, reduces, receiver, number + 2);
            MPI_Reduce(&mine, &time, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (number >= 0)
                times[disturb][number] = time * 1e6;
        }
    well = lab_right(well);
    lab_print(&c, "undisturbed", "us", times[0], lab.samples, well);
    lab_print(&c, "disturbed", "us", times[1], lab.samples, well);
    memcpy(sorted, times[0], sizeof sorted);
    qsort(sorted, (size_t)lab.samples, sizeof *sorted, ascending);
    for (int i = 0; i < lab.samples; i++)
        times[1][i] /= sorted[lab.samples / 2];
    lab_print(&c, "ratio", "x", times[1], lab.samples, well);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *bench;
        double (*once)(size_t, bool);
        const size_t *(*sizes)(void);
        int receiver;
    } cases[] = {{"independence_send", send, sizes, 0},
                 {"independence_receive", receive, sizes, 1},
                 {"independence_iallreduce", iallreduce, allreduce_sizes, 1},
                 {"independence_ibcast", ibcast, sizes, 1}};
    struct lab_pool pool;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    lab_pool_open(&pool, 4 << 20, 4 << 20, false);
    buffer = pool.send;
    result = pool.receive;
    for (size_t i = 0; lab.forms[0] && i < sizeof cases / sizeof *cases; i++)
        LAB_EACH_SIZE(bytes, cases[i].sizes)
        {
            if (lab_wanted(cases[i].bench))
                measure(cases[i].bench, cases[i].once, *bytes, cases[i].receiver);
        }
    lab_pool_close(&pool);
    return lab_end();
}
