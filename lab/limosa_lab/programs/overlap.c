/* lab: ranks=2 */
/* How much of a transfer's time disappears behind computation that goes on meanwhile.
 *
 * For each operation three times are taken on the ranks that compute: `transfer`, start and wait at once;
 * `computation`, four times as long, so that one processor has the time for what two may have shared; and `both`,
 * start, compute, wait. Then
 *     overlap = 100 % x (transfer + computation - both) / transfer, not less than 0 and not more than 100.
 * The computation is arithmetic in registers and calls no MPI. x.computing says which ranks compute meanwhile:
 *
 *   overlap_transfer
 *       rank 0 sends, rank 1 receives: "sender" or "receiver", with the other waiting in MPI, or "both"
 *   overlap_iallreduce, overlap_ibcast
 *       "one" (rank 0, the root of the broadcast), with the other waiting in MPI, or "all"
 *
 * Where every rank computes and there is no spare processor, the transfer itself takes its time from the
 * computation. Only the hot form. Verified: all bytes of the messages. */
#include "lab.h"

LAB_SIZES(sizes, (64 << 10, 256 << 10, 1 << 20, 4 << 20), (64 << 10, 4 << 20))

/* Computation in multiples of the transfer. */
enum { STRETCH = 4 };

static double units_per_second;

struct subject {
    void (*start)(struct lab_case *, char *out, char *in, MPI_Request *);
    unsigned who; /* bit of each rank that computes */
    long units;   /* of computation between start and wait; 0: none */
};

static void start_transfer(struct lab_case *c, char *out, char *in, MPI_Request *request)
{
    if (lab.rank == 0)
        MPI_Isend(out, (int)c->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(in, (int)c->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, request);
}

static void start_iallreduce(struct lab_case *c, char *out, char *in, MPI_Request *request)
{
    MPI_Iallreduce(out, in, (int)(c->bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
}

static void start_ibcast(struct lab_case *c, char *out, char *in, MPI_Request *request)
{
    MPI_Ibcast(lab.rank == 0 ? out : in, (int)c->bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
}

/* Every operation begins with both ranks ready, which is not counted. */
static double run(struct lab_case *c, long operations)
{
    const struct subject *s = c->more;
    bool computing = s->who >> lab.rank & 1;
    double seconds = 0;
    for (long i = 0; i < operations; i++) {
        MPI_Request request;
        size_t slot = lab_next(&c->pool);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, c->peer, 2, NULL, 0, MPI_BYTE, c->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double start = lab_now();
        s->start(c, lab_send_slot(&c->pool, slot), lab_receive_slot(&c->pool, slot), &request);
        if (computing)
            lab_compute(s->units);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (computing)
            seconds += lab_now() - start;
    }
    return seconds;
}

static void fill(struct lab_case *c, size_t slot, size_t message)
{
    const struct subject *s = c->more;
    double *numbers = (double *)(void *)lab_send_slot(&c->pool, slot);
    if (s->start != start_iallreduce) {
        lab_fill_pair(c, slot, message);
        return;
    }
    for (size_t i = 0; i < c->bytes / sizeof *numbers; i++)
        numbers[i] = (double)((size_t)(lab.rank + 1) * (i % 1021 + message));
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->bytes);
}

static bool check(struct lab_case *c, size_t slot, size_t message)
{
    const struct subject *s = c->more;
    const double *numbers = (const double *)(const void *)lab_receive_slot(&c->pool, slot);
    if (s->start != start_iallreduce)
        return lab.rank == 0 || lab_check_pair(c, slot, message);
    for (size_t i = 0; i < c->bytes / sizeof *numbers; i++)
        if (numbers[i] != 3.0 * (double)(i % 1021 + message))
            return false;
    return true;
}

/* Units of lab_compute in a second: the best of several tries, the slower of the ranks. */
static void calibrate_computing(void)
{
    double most = 0;
    for (int i = 0; i < 20; i++) {
        double start = lab_now();
        lab_compute(100000);
        double now = 100000 / (lab_now() - start);
        most = now > most ? now : most;
    }
    MPI_Allreduce(&most, &units_per_second, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static double computation(long units)
{
    enum { TIMES = 5 };
    double start = lab_now(), mine, most;
    for (int i = 0; i < TIMES; i++)
        lab_compute(units);
    mine = (lab_now() - start) / TIMES;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void measure(struct lab_case *c)
{
    static struct lab_samples transfer;
    struct subject *s = c->more;
    double overlap[LAB_MAX_SAMPLES], wall;
    s->units = 0;
    lab_measure(c, &transfer);
    long operations = lab_calibrate(c, lab.quick ? 0.004 : 0.01);
    for (int i = 0; i < lab.samples; i++) {
        s->units = 0;
        double alone = lab_batch(c, operations, 0, &wall);
        s->units = (long)(STRETCH * alone * units_per_second) + 1;
        double computing = computation(s->units);
        double together = lab_batch(c, operations, 0, &wall);
        overlap[i] = 100 * (alone + computing - together) / alone;
        overlap[i] = overlap[i] < 0 ? 0 : overlap[i] > 100 ? 100 : overlap[i];
    }
    lab_print_times(c, &transfer, "transfer", "us", 1e6);
    lab_print(c, "overlap", "%", overlap, lab.samples, transfer.verified);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *bench, *x;
        void (*start)(struct lab_case *, char *, char *, MPI_Request *);
        unsigned who;
    } subjects[] = {{"overlap_transfer", "{\"computing\":\"sender\"}", start_transfer, 1},
                    {"overlap_transfer", "{\"computing\":\"receiver\"}", start_transfer, 2},
                    {"overlap_transfer", "{\"computing\":\"both\"}", start_transfer, 3},
                    {"overlap_iallreduce", "{\"computing\":\"one\"}", start_iallreduce, 1},
                    {"overlap_iallreduce", "{\"computing\":\"all\"}", start_iallreduce, 3},
                    {"overlap_ibcast", "{\"computing\":\"one\"}", start_ibcast, 1},
                    {"overlap_ibcast", "{\"computing\":\"all\"}", start_ibcast, 3}};
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    calibrate_computing();
    for (size_t k = 0; lab.forms[0] && k < sizeof subjects / sizeof *subjects; k++)
        LAB_EACH_SIZE(bytes, sizes)
        {
            struct subject s = {.start = subjects[k].start, .who = subjects[k].who};
            struct lab_case c = {
                .bench = subjects[k].bench, .form = "hot", .bytes = *bytes, .x = subjects[k].x, .more = &s};
            if (!lab_wanted(c.bench))
                continue;
            c.run = run;
            c.fill = fill;
            c.check = check;
            c.peer = 1 - lab.rank;
            lab_pool_open(&c.pool, *bytes, *bytes, false);
            measure(&c);
            lab_pool_close(&c.pool);
        }
    return lab_end();
}
