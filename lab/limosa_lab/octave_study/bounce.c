/* Ping-pong and broadcast in C, as modern.m has them: `bounce pingpong|bcast SAMPLES BYTES...`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;

static double bounce(double *x, double *y, int count)
{
    int trips = (int)(2e7 / (count ? 8.0 * count : 1.0));
    trips = trips < 2 ? 2 : trips > 500 ? 500 : trips;
    double start = MPI_Wtime();
    for (int trip = 0; trip < trips; trip++)
        if (rank == 0) {
            MPI_Send(x, count, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(y, count, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(y, count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(y, count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        }
    double seconds = (MPI_Wtime() - start) / 2 / trips;
    if (rank == 0 && memcmp(x, y, 8 * (size_t)count)) {
        fprintf(stderr, "bounce: what came back is not what was sent\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return seconds;
}

static double spread(double *x, int count)
{
    int trips = 20;
    double start = MPI_Wtime();
    for (int trip = 0; trip < trips; trip++) {
        MPI_Bcast(x, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / trips;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) {
        if (rank == 0)
            fprintf(stderr, "usage: bounce pingpong|bcast SAMPLES BYTES...\n");
        MPI_Finalize();
        return 2;
    }
    int samples = atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        int count = atoi(argv[i]) / 8;
        double *x = malloc(8 * (size_t)count + 8), *y = malloc(8 * (size_t)count + 8);
        for (int j = 0; j < count; j++)
            x[j] = (double)rand() / RAND_MAX;
        if (rank == 0)
            printf("%s %s", argv[1], argv[i]);
        for (int sample = 0; sample <= samples; sample++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double seconds = strcmp(argv[1], "pingpong") ? spread(x, count) : bounce(x, y, count);
            if (rank == 0 && sample) /* the first one warms up */
                printf(" %.3e", seconds);
        }
        if (rank == 0)
            printf("\n");
        free(x);
        free(y);
    }
    MPI_Finalize();
    return 0;
}
