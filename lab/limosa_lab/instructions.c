/* Calls whose instructions are counted; for 2 ranks, each under valgrind --tool=callgrind (instructions.py).
 *
 * Each repetition of a case ends with a dump of the counts, named after the case; it holds what the calls inside COUNT
 * have executed and hardly anything else. What the counted rank needs from its partner has happened before:
 * `pause_a_while` is long enough for the partner to have done its part. The project's tests have a ceiling for each
 * case.
 */
#include <mpi.h>
#include <time.h>
#include <valgrind/callgrind.h>

#define WINDOW 64
/* The first repetitions build what is built once, and are not counted. */
#define WARM_UP 3
#define COUNTED 7

/* Executes calls, and dumps their counts if this rank is the one to be counted. */
#define COUNT(calls)                                                                                                   \
    do {                                                                                                               \
        if (counting)                                                                                                  \
            CALLGRIND_ZERO_STATS;                                                                                      \
        calls;                                                                                                         \
        if (counting)                                                                                                  \
            CALLGRIND_DUMP_STATS_AT(current_case);                                                                     \
    } while (0)

static int rank;
static int counting;
static const char *current_case;

static void pause_a_while(void)
{
    struct timespec duration = {.tv_nsec = 30 * 1000 * 1000};
    nanosleep(&duration, NULL);
}

static void eight_bytes(void)
{
    long value = 1;
    if (rank == 0) {
        COUNT(MPI_Send(&value, 8, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
    } else {
        pause_a_while();
        COUNT(MPI_Recv(&value, 8, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

/* A window of messages; the receiver begins when all of them have arrived. */
static void window(void)
{
    long values[WINDOW] = {0};
    MPI_Request requests[WINDOW];
    if (rank == 0) {
        COUNT({
            for (int i = 0; i < WINDOW; i++)
                MPI_Isend(&values[i], 8, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        });
    } else {
        pause_a_while();
        COUNT({
            for (int i = 0; i < WINDOW; i++)
                MPI_Irecv(&values[i], 8, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        });
    }
}

static void barrier(void)
{
    COUNT(MPI_Barrier(MPI_COMM_WORLD));
}

static void allreduce(void)
{
    double one = 1, sum = 0;
    COUNT(MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
}

static void bcast(void)
{
    double value = 1;
    COUNT(MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
}

/* One-sided, to the memory of the other rank. */
static MPI_Win win;
static MPI_Group partner;

static void put(void)
{
    long value = 1;
    COUNT(MPI_Put(&value, 8, MPI_BYTE, 1 - rank, 0, 8, MPI_BYTE, win));
}

static void get(void)
{
    long value = 1;
    COUNT(MPI_Get(&value, 8, MPI_BYTE, 1 - rank, 0, 8, MPI_BYTE, win));
}

static void fetch_and_op(void)
{
    long value = 1, old = 0;
    COUNT(MPI_Fetch_and_op(&value, &old, MPI_LONG, 1 - rank, 8, MPI_SUM, win));
}

static void flush(void)
{
    COUNT(MPI_Win_flush(1 - rank, win));
}

static void lock_and_unlock(void)
{
    if (counting)
        COUNT({
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, win);
            MPI_Win_unlock(1 - rank, win);
        });
}

static void lock_all_and_unlock_all(void)
{
    if (counting)
        COUNT({
            MPI_Win_lock_all(0, win);
            MPI_Win_unlock_all(win);
        });
}

static void fence(void)
{
    COUNT(MPI_Win_fence(0, win));
}

static void start_and_complete(void)
{
    if (rank == 0) {
        COUNT({
            MPI_Win_start(partner, 0, win);
            MPI_Win_complete(win);
        });
    } else {
        MPI_Win_post(partner, 0, win);
        MPI_Win_wait(win);
    }
}

/* Repeats a case and counts it at one rank, which begins when its partner has. */
static void repeat(const char *name, void (*calls)(void), int counted)
{
    current_case = name;
    for (int i = 0; i < WARM_UP + COUNTED; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        counting = rank == counted && i >= WARM_UP;
        if (rank == counted)
            pause_a_while();
        calls();
    }
    counting = 0;
}

int main(int argc, char **argv)
{
    void *memory;
    MPI_Group world;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    repeat("send", eight_bytes, 0);
    repeat("receive", eight_bytes, 1);
    repeat("window_send", window, 0);
    repeat("window_receive", window, 1);
    repeat("barrier_first_rank", barrier, 0);
    repeat("barrier_last_rank", barrier, 1);
    repeat("allreduce_first_rank", allreduce, 0);
    repeat("allreduce_last_rank", allreduce, 1);
    repeat("bcast_root", bcast, 0);
    repeat("bcast_other", bcast, 1);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    repeat("put", put, 0);
    repeat("get", get, 0);
    repeat("fetch_and_op", fetch_and_op, 0);
    repeat("flush", flush, 0);
    MPI_Win_unlock_all(win);
    repeat("lock_and_unlock", lock_and_unlock, 0);
    repeat("lock_all_and_unlock_all", lock_all_and_unlock_all, 0);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){1 - rank}, &partner);
    repeat("start_and_complete", start_and_complete, 0);
    MPI_Group_free(&partner);
    MPI_Group_free(&world);
    repeat("fence", fence, 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
