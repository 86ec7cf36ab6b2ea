/* Few pairs of ranks exchange messages: rank 0 sends to the last one, and the last one to rank 1. Then all say that
 * they are ready, and sleep. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, word = 7;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int last = size - 1;
    if (rank == 0) {
        MPI_Send(&word, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    } else if (rank == last) {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        word++;
        MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(&word, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word != 8) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
