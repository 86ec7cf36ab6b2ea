/* lab: ranks=2 */
/* One-sided communication: rank 0 accesses the memory of rank 1.
 *   rma_put, rma_get, rma_accumulate, rma_fetch_and_op, rma_compare_and_swap
 *                    under MPI_Win_lock_all, each with a flush (`many`: 1), or 64 of them with one flush (`many`: 64)
 *   rma_fence        both ranks put and call MPI_Win_fence
 *   rma_pscw         start, put and complete on rank 0; post and wait on rank 1
 *   rma_lock         MPI_Win_lock (exclusive), put, MPI_Win_unlock
 *   rma_lock_all     MPI_Win_lock_all, put, MPI_Win_flush_all, MPI_Win_unlock_all
 *   rma_computing_put, rma_computing_get, rma_computing_fetch_and_op
 *                    ten operations with a flush each while rank 1 is in MPI (`undisturbed`) and while it computes
 *                    (`disturbed`); `ratio`: each disturbed time by the median undisturbed one
 * `memory`: the window's is the library's (`allocate`, MPI_Win_allocate), the program's (`create`, MPI_Win_create), or
 * the program's from MPI_Alloc_mem (`alloc_mem`, MPI_Win_create).
 * MPI_DOUBLE is accumulated, MPI_LONG is fetched and swapped, everything else is MPI_BYTE. Only the hot form.
 * Verified: all bytes at the target, and what is fetched. */
#include "lab.h"

LAB_SIZES(move_sizes, (8, 1 << 10, 64 << 10, 1 << 20), (8, 1 << 20))
LAB_SIZES(number_sizes, (8), (8))

enum { MANY = 64, MESSAGES = 4, BUSY_OPERATIONS = 10 };
#define COMPUTING 0.05 /* seconds */

enum access { Put, Get, Accumulate, Fetch_and_op, Compare_and_swap };
enum synchronisation { Flush, Fence, Pscw, Lock, Lock_all };

/* The window of all cases, its memory, and the origin's buffer and result. */
static MPI_Win window;
static char *memory, *buffer, *result;
static MPI_Group partner;

struct work {
    enum access access;
    enum synchronisation synchronisation;
    int bytes, many;
};

static void access_once(const struct work *w, int target)
{
    long *swapped = (long *)buffer;
    switch (w->access) {
    case Put: MPI_Put(buffer, w->bytes, MPI_BYTE, target, 0, w->bytes, MPI_BYTE, window); break;
    case Get: MPI_Get(result, w->bytes, MPI_BYTE, target, 0, w->bytes, MPI_BYTE, window); break;
    case Accumulate:
        MPI_Accumulate(buffer, w->bytes / 8, MPI_DOUBLE, target, 0, w->bytes / 8, MPI_DOUBLE, MPI_SUM, window);
        break;
    case Fetch_and_op: MPI_Fetch_and_op(buffer, result, MPI_LONG, target, 0, MPI_SUM, window); break;
    case Compare_and_swap: MPI_Compare_and_swap(&swapped[0], &swapped[1], result, MPI_LONG, target, 0, window); break;
    }
}

static double run_passive(struct lab_case *c, long operations)
{
    const struct work *w = c->more;
    if (lab.rank != 0)
        return 0;
    double start = lab_now();
    for (long i = 0; i < operations; i++)
        switch (w->synchronisation) {
        case Lock:
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
            access_once(w, 1);
            MPI_Win_unlock(1, window);
            break;
        case Lock_all:
            MPI_Win_lock_all(0, window);
            access_once(w, 1);
            MPI_Win_flush_all(window);
            MPI_Win_unlock_all(window);
            break;
        default:
            for (int k = 0; k < w->many; k++)
                access_once(w, 1);
            MPI_Win_flush(1, window);
        }
    return lab_now() - start;
}

static double run_active(struct lab_case *c, long operations)
{
    const struct work *w = c->more;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        if (w->synchronisation == Fence) {
            access_once(w, 1 - lab.rank);
            MPI_Win_fence(0, window);
        } else if (lab.rank == 0) {
            MPI_Win_start(partner, 0, window);
            access_once(w, 1);
            MPI_Win_complete(window);
        } else {
            MPI_Win_post(partner, 0, window);
            MPI_Win_wait(window);
        }
    }
    return lab_now() - start;
}

/* Between accesses of rank 0 and rank 1's own; under MPI_Win_lock_all. */
static void meet(void)
{
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
}

/* One message: rank 0 accesses, then both look. */
static bool right(const struct work *w, size_t message)
{
    bool well = true;
    size_t bytes = (size_t)w->bytes;
    double *sums = (double *)memory, *terms = (double *)buffer;
    long *number = (long *)memory, *operand = (long *)buffer, *old = (long *)result;
    memset(memory, LAB_UNRECEIVED, bytes);
    memset(result, LAB_UNRECEIVED, bytes);
    lab_fill(w->access == Get ? memory : buffer, bytes, lab_key(lab.rank, 0, message));
    for (size_t i = 0; w->access == Accumulate && i < bytes / 8; i++) {
        sums[i] = (double)i;
        terms[i] = (double)(message + i % 100);
    }
    if (w->access == Fetch_and_op || w->access == Compare_and_swap) {
        number[0] = 1000 + (long)message;
        operand[0] = 7;
        operand[1] = 1000 + (long)message;
    }
    meet();
    if (lab.rank == 0) {
        access_once(w, 1);
        MPI_Win_flush(1, window);
    }
    meet();
    if (w->access == Put && lab.rank == 1)
        well = lab_check(memory, bytes, lab_key(0, 0, message));
    else if (w->access == Get && lab.rank == 0)
        well = lab_check(result, bytes, lab_key(1, 0, message));
    else if (w->access >= Fetch_and_op)
        well = lab.rank == 0 ? old[0] == 1000 + (long)message
                             : number[0] == (w->access == Fetch_and_op ? 1007 + (long)message : 7);
    for (size_t i = 0; w->access == Accumulate && lab.rank == 1 && i < bytes / 8; i++)
        well = well && sums[i] == (double)(i + message + i % 100);
    meet();
    return well;
}

static bool verify(const struct work *w)
{
    bool well = true, is_open = w->synchronisation != Flush;
    if (is_open)
        MPI_Win_lock_all(0, window);
    for (size_t message = 0; message < MESSAGES; message++)
        well = right(w, message) && well;
    if (is_open)
        MPI_Win_unlock_all(window);
    return lab_right(well);
}

static void measure(const char *bench, struct work w, const char *memory_name)
{
    static struct lab_samples samples;
    char x[80];
    struct lab_case c = {.bench = bench, .form = "hot", .bytes = (size_t)w.bytes, .x = x, .more = &w};
    if (!lab_wanted(bench))
        return;
    snprintf(x, sizeof x, "{\"memory\":\"%s\",\"many\":%d}", memory_name, w.many);
    bool well = verify(&w);
    c.run = w.synchronisation == Fence || w.synchronisation == Pscw ? run_active : run_passive;
    lab_pool_open(&c.pool, 0, 0, false);
    if (w.synchronisation == Fence)
        MPI_Win_fence(0, window);
    lab_measure(&c, &samples);
    if (w.synchronisation == Fence)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    samples.verified = samples.verified && well;
    lab_print_times(&c, &samples, "time", "us", 1e6 / w.many);
    lab_pool_close(&c.pool);
}

/* --- a target that computes --------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one operation. Rank 1 is in MPI_Barrier meanwhile, or computes. */
static double once(const struct work *w, bool disturb)
{
    double time = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (lab.rank == 0) {
        lab_sleep(0.003);
        double start = lab_now();
        for (int i = 0; i < BUSY_OPERATIONS; i++) {
            access_once(w, 1);
            MPI_Win_flush(1, window);
        }
        time = (lab_now() - start) / BUSY_OPERATIONS;
    } else if (disturb) {
        lab_compute_for(COMPUTING);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return time;
}

static void measure_computing(const char *bench, struct work w, const char *memory_name)
{
    static double times[2][LAB_MAX_SAMPLES], sorted[LAB_MAX_SAMPLES];
    char x[80];
    struct lab_case c = {.bench = bench, .form = "hot", .bytes = (size_t)w.bytes, .x = x};
    if (!lab_wanted(bench))
        return;
    snprintf(x, sizeof x, "{\"memory\":\"%s\"}", memory_name);
    bool well = verify(&w);
    for (int disturb = 0; disturb < 2; disturb++)
        for (int number = -2; number < lab.samples; number++) { /* the first two warm up */
            double time = once(&w, disturb);
            if (number >= 0)
                times[disturb][number] = time * 1e6;
        }
    lab_print(&c, "undisturbed", "us", times[0], lab.samples, well);
    lab_print(&c, "disturbed", "us", times[1], lab.samples, well);
    memcpy(sorted, times[0], sizeof sorted);
    qsort(sorted, (size_t)lab.samples, sizeof *sorted, ascending);
    for (int i = 0; i < lab.samples; i++)
        times[1][i] /= sorted[lab.samples / 2];
    lab_print(&c, "ratio", "x", times[1], lab.samples, well);
}

/* --- all cases ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *bench, *computing;
    enum access access;
    const size_t *(*sizes)(void);
} accesses[] = {{"rma_put", "rma_computing_put", Put, move_sizes},
                {"rma_get", "rma_computing_get", Get, move_sizes},
                {"rma_accumulate", NULL, Accumulate, move_sizes},
                {"rma_fetch_and_op", "rma_computing_fetch_and_op", Fetch_and_op, number_sizes},
                {"rma_compare_and_swap", NULL, Compare_and_swap, number_sizes}};

static void measure_passive(const char *memory_name)
{
    MPI_Win_lock_all(0, window);
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        LAB_EACH_SIZE(bytes, accesses[i].sizes)
        {
            struct work w = {.access = accesses[i].access, .bytes = (int)*bytes, .many = 1};
            measure(accesses[i].bench, w, memory_name);
            if (accesses[i].computing && *bytes == 8)
                measure_computing(accesses[i].computing, w, memory_name);
            w.many = MANY;
            if (*bytes == 8)
                measure(accesses[i].bench, w, memory_name);
        }
    MPI_Win_unlock_all(window);
}

static void measure_window(const char *memory_name)
{
    struct work eight = {.access = Put, .bytes = 8, .many = 1};
    measure_passive(memory_name);
    if (!lab_bytes_wanted(8))
        return;
    eight.synchronisation = Lock;
    measure("rma_lock", eight, memory_name);
    eight.synchronisation = Lock_all;
    measure("rma_lock_all", eight, memory_name);
    eight.synchronisation = Pscw;
    measure("rma_pscw", eight, memory_name);
    eight.synchronisation = Fence;
    measure("rma_fence", eight, memory_name);
}

int main(int argc, char **argv)
{
    struct lab_pool pool;
    MPI_Group world;
    MPI_Aint bytes = 1 << 20;
    lab_start_pair(argc, argv, MPI_THREAD_SINGLE);
    lab_pool_open(&pool, (size_t)bytes, (size_t)bytes, false);
    buffer = pool.send;
    result = pool.receive;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){1 - lab.rank}, &partner);
    if (lab.forms[0]) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        memset(memory, 0, (size_t)bytes);
        measure_window("allocate");
        MPI_Win_free(&window);
        memory = aligned_alloc(4096, (size_t)bytes);
        if (!memory)
            lab_die("no memory for the window");
        memset(memory, 0, (size_t)bytes);
        MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        measure_window("create");
        MPI_Win_free(&window);
        free(memory);
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
        memset(memory, 0, (size_t)bytes);
        MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        measure_window("alloc_mem");
        MPI_Win_free(&window);
        MPI_Free_mem(memory);
    }
    MPI_Group_free(&partner);
    MPI_Group_free(&world);
    lab_pool_close(&pool);
    return lab_end();
}
