/* A first program with MPI: the ranks compute the area of the unit circle together.
 *
 *     make && limosa run -n 4 ./first
 *
 * Limosa starts the program 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
 * computes reaches the other ranks by messages. */

#include <math.h>
#include <mpi.h>
#include <stdio.h>

/* Returns the area of the unit circle on every rank, from strips of width 1/steps under the quarter circle. */
static double circle_area(int steps)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* the number of this rank, from 0 */
    MPI_Comm_size(MPI_COMM_WORLD, &size); /* the number of ranks */

    /* The ranks deal out the strips: with 4 ranks, rank 1 computes the strips 1, 5, 9, ... */
    double own_part = 0, area;
    for (int strip = rank; strip < steps; strip += size) {
        double x = (strip + 0.5) / steps;
        own_part += 4.0 / steps * sqrt(1 - x * x);
    }
    /* Adds up the parts of all ranks; each rank gets the sum. All ranks must make this call, otherwise it waits. */
    MPI_Allreduce(&own_part, &area, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return area;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv); /* before all other calls of MPI */
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double area = circle_area(100000);
    /* All ranks have come here. If each printed the result, it would appear once for each rank. */
    if (rank == 0)
        printf("the area of the unit circle, by %d ranks, is %.5f\n", size, area);
    MPI_Finalize(); /* after all other calls of MPI */
    return 0;
}
