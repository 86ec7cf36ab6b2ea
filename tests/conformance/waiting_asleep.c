/* Ranks that wait for long sleep: they are woken for what comes, and hardly ever for anything else. */
#include "limosa_test.h"

#include <sys/resource.h>
#include <unistd.h>

/* In a second: whatever looks by the clock does so some hundred times. */
enum { MOST_SLEEPS = 2000, LONGEST = 100000 };

/* How often this process has given up the processor to wait for something. */
static long sleeps(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

/* A network has connections after that, and has carried short and long messages. */
static void exchange(void)
{
    static char out[LONGEST], in[LONGEST];
    for (int other = 0; other < lt_size; other++) {
        for (int length = 1; length <= LONGEST; length *= 10) {
            OK(MPI_Sendrecv(out, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        }
    }
}

static void who_waits_sleeps(void)
{
    int value = lt_rank;
    exchange();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (lt_rank == 0) {
        sleep(1);
        for (int other = 1; other < lt_size; other++) {
            OK(MPI_Send(&value, 1, MPI_INT, other, 2, MPI_COMM_WORLD));
        }
        return;
    }
    long before = sleeps();
    double begin = MPI_Wtime();
    OK(MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    long during = sleeps() - before;
    /* The sender may have been stopped for longer than it has slept. */
    double seconds = MPI_Wtime() - begin, most = MOST_SLEEPS * (seconds > 1 ? seconds : 1);
    if ((double)during >= most) {
        fprintf(stderr, "rank %d was woken %ld times in %.1f s\n", lt_rank, during, seconds);
    }
    CHECK((double)during < most);
}

LT_MAIN("waiting_asleep", TEST(who_waits_sleeps))
