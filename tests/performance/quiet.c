/* Scenes in which ranks wait.
 *
 * receive
 *     rank 0 computes nothing for a second, then sends; rank 1 waits for it, twice, and prints how often its threads
 *     gave up a processor, at best: threads that have just started do so, too, and so does one for which the system
 *     fetches a page
 *
 * barrier N
 *     N barriers, each of which rank 0 enters when all others are asleep; then rank 0 reads a line before it enters the
 *     last one
 */
#include <dirent.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank;

static void rest(long milliseconds)
{
    struct timespec duration = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&duration, NULL);
}

/* How often the threads of this process have gone to sleep: their voluntary context switches. */
static long switches(void)
{
    long total = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        char path[300], line[200];
        long count;
        if (task->d_name[0] == '.')
            continue; /* `..` would count the first thread again */
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
                total += count;
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return total;
}

static void receive(void)
{
    long value = 0, least = LONG_MAX;
    for (int turn = 0; turn < 2; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            rest(1000);
            MPI_Send(&value, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            long before = switches();
            MPI_Recv(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            long during = switches() - before;
            least = during < least ? during : least;
        }
    }
    if (rank == 1)
        printf("switches %ld\n", least);
}

static void barrier(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank == 0)
            rest(50);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        getchar();
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && strcmp(argv[1], "receive") == 0)
        receive();
    else
        barrier(argc > 2 ? atoi(argv[2]) : 0);
    MPI_Finalize();
    return 0;
}
