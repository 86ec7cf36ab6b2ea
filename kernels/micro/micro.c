/* Ping-pong, broadcast, reduce, allreduce; the twin of micro.py, which says how they are measured. */
#include "../common/kernel.h"

enum { PINGPONG, BCAST, REDUCE, ALLREDUCE, BENCHES };
static const char *const names[BENCHES] = {"pingpong", "bcast", "reduce", "allreduce"};

static double *mine, *into;

static void operate(int bench, int count)
{
    int partner = 1 - kernel.rank;
    switch (bench) {
    case PINGPONG:
        if (kernel.rank == 0) {
            MPI_Send(mine, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD);
            MPI_Recv(into, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(into, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(mine, count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD);
        }
        break;
    case BCAST: MPI_Bcast(mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
    case REDUCE: MPI_Reduce(mine, into, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); break;
    default: MPI_Allreduce(mine, into, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Whether a name is in a list with commas. */
static bool listed(const char *name, const char *list)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static bool all_equal(const double *values, int count, double expected)
{
    for (int i = 0; i < count; i++)
        if (values[i] != expected)
            return false;
    return true;
}

static bool right(int bench, int count)
{
    int good;
    if (bench == PINGPONG)
        good = all_equal(into, count, 2 - kernel.rank);
    else if (bench == BCAST)
        good = all_equal(mine, count, 1);
    else
        good = (bench == REDUCE && kernel.rank != 0) || all_equal(into, count, 0.5 * kernel.size * (kernel.size + 1));
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good;
}

static double timed(int bench, int count, int iterations)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        operate(bench, count);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

int main(int argc, char **argv)
{
    const char *only = "pingpong,bcast,reduce,allreduce";
    int min_bytes = 8, max_bytes = 1 << 23, factor = 2, most = 200;
    double limit = 2;
    const struct kernel_option options[] = {
        {"--only", KERNEL_WORD, &only, "some of pingpong,bcast,reduce,allreduce"},
        {"--min-bytes", KERNEL_INT, &min_bytes, "smallest message (default 8)"},
        {"--max-bytes", KERNEL_INT, &max_bytes, "largest message (default 8 MB)"},
        {"--factor", KERNEL_INT, &factor, "from one size to the next (default 2)"},
        {"--iterations", KERNEL_INT, &most, "operations in a loop (default 200)"},
        {"--seconds", KERNEL_REAL, &limit, "longest time for a loop (default 2)"},
        {0},
    };
    kernel_start(argc, argv, "micro", "ping-pong, broadcast, reduce and allreduce", options);
    if (min_bytes < 8 || max_bytes < min_bytes || min_bytes % 8 || max_bytes % 8 || max_bytes > 1 << 30)
        kernel_refuse(
            "--min-bytes and --max-bytes must be multiples of 8, the second not below the first and at most 1 GB");
    if (factor < 2 || most < 1 || limit <= 0)
        kernel_refuse("--factor must be at least 2, --iterations at least 1, --seconds positive");
    if (kernel.size < 2)
        kernel_refuse("at least 2 processes are needed");
    mine = kernel_allocate((size_t)max_bytes);
    into = kernel_allocate((size_t)max_bytes);
    for (int bench = 0; bench < BENCHES; bench++) {
        if (!listed(names[bench], only))
            continue;
        if (bench == PINGPONG && kernel.size != 2)
            kernel_refuse("pingpong is for 2 processes, not %d; leave it out with --only", kernel.size);
        for (long bytes = min_bytes;;) {
            int count = (int)(bytes / 8);
            for (int i = 0; i < count; i++) {
                mine[i] = kernel.rank + 1;
                into[i] = 0;
            }
            operate(bench, count);
            bool good = right(bench, count);
            double probe = timed(bench, count, 2) / 2;
            MPI_Bcast(&probe, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            int iterations = (int)fmax(1, fmin(most, limit / probe));
            double seconds = timed(bench, count, iterations) / iterations / (bench == PINGPONG ? 2 : 1);
            kernel_report(names[bench], "time", "us", 1e6 * seconds, (int)bytes, good, "");
            if (bytes == max_bytes)
                break;
            bytes = bytes * factor < max_bytes ? bytes * factor : max_bytes;
        }
    }
    free(mine);
    free(into);
    return kernel_end();
}
