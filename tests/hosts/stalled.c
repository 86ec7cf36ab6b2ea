/* Messages inside a host while another host cannot be reached. Ranks 0 and 1 are on one host, rank 2 on the other host.
 * 0 and 1 send each other messages in turns, before and after rank 0 has begun to send many bytes to rank 2 and to
 * receive from it. Rank 0 prints the median of half a round trip: "free" and "stalled". In between it waits for the
 * file that the first argument names. At the end all messages between the hosts have to come. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TRIPS = 2000, BYTES = 8 << 20 };

static int rank;

static int by_length(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static void exchange(const char *when)
{
    static double times[TRIPS];
    long long data = 0;
    for (int trip = 0; trip < TRIPS && rank < 2; trip++) {
        double begin = MPI_Wtime();
        if (rank == 0) {
            data = trip;
            MPI_Send(&data, 1, MPI_LONG_LONG, 1, 1, MPI_COMM_WORLD);
        }
        MPI_Recv(&data, 1, MPI_LONG_LONG, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            MPI_Send(&data, 1, MPI_LONG_LONG, 0, 1, MPI_COMM_WORLD);
        }
        if (data != trip) {
            MPI_Abort(MPI_COMM_WORLD, 99);
        }
        times[trip] = (MPI_Wtime() - begin) / 2;
    }
    if (rank == 0) {
        qsort(times, TRIPS, sizeof *times, by_length);
        printf("%s %.3f us\n", when, 1e6 * times[TRIPS / 2]);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = malloc(BYTES), *in = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) {
        out[i] = (char)(i % 251 + rank);
    }
    /* The hosts know each other. */
    MPI_Barrier(MPI_COMM_WORLD);
    exchange("free");
    while (rank == 0 && argc > 1 && access(argv[1], F_OK) != 0) {
        usleep(10000);
    }
    MPI_Request requests[2];
    int peer = 2 - rank, between = rank != 1;
    if (between) {
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[1]);
    }
    exchange("stalled");
    if (between) {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < BYTES; i++) {
            if (in[i] != (char)(i % 251 + peer)) {
                MPI_Abort(MPI_COMM_WORLD, 98);
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("all came\n");
    }
    MPI_Finalize();
    return 0;
}
