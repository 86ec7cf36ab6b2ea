/* y += A x with a sparse matrix, 200 times: as SparseMatmult.java. */
#include "jgf.h"

enum { ITERATIONS = 200 };

static const int orders[] = {50000, 100000, 500000}, entries_of[] = {250000, 500000, 2500000};
static const double reference[] = {75.02484945753453, 150.0130719633895, 749.5245870753752};

int main(int argc, char **argv)
{
    int size = jgf_start("SparseMatmult", argc, argv), n = orders[size], entries = entries_of[size];
    int block = jgf_block(entries, 1), mine = jgf_share(entries, block, jgf_rank), kept = jgf_rank ? mine : entries;
    jgf_random random = jgf_seed(10101010);
    double *x = jgf_allocate(n, sizeof(double)), *y = jgf_allocate(n, sizeof(double));
    double *part = jgf_allocate(n, sizeof(double)), *val = jgf_allocate(kept, sizeof(double));
    int *row = jgf_allocate(kept, sizeof(int)), *col = jgf_allocate(kept, sizeof(int));
    for (int i = 0; i < n; i++)
        x[i] = jgf_next_double(&random) * 1e-6;
    if (jgf_rank == 0) {
        for (int i = 0; i < entries; i++) {
            row[i] = abs(jgf_next(&random, 32)) % n;
            col[i] = abs(jgf_next(&random, 32)) % n;
            val[i] = jgf_next_double(&random);
        }
        for (int k = 1; k < jgf_processes; k++) {
            int theirs = jgf_share(entries, block, k);
            MPI_Ssend(row + (size_t)k * block, theirs, MPI_INT, k, 1, MPI_COMM_WORLD);
            MPI_Ssend(col + (size_t)k * block, theirs, MPI_INT, k, 2, MPI_COMM_WORLD);
            MPI_Ssend(val + (size_t)k * block, theirs, MPI_DOUBLE, k, 3, MPI_COMM_WORLD);
        }
    } else {
        MPI_Recv(row, mine, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(col, mine, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(val, mine, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (int i = 0; i < mine; i++)
            part[row[i]] += x[col[i]] * val[i];
        MPI_Allreduce(part, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin, total = 0;
    for (int i = 0; i < entries && jgf_rank == 0; i++)
        total += y[row[i]];
    /* The order in which vectors are added shows in the last digits, above 1e-12 at size C. */
    int is_right = jgf_rank || fabs(total - reference[size]) <= (size == 2 ? 1e-11 : 1e-12);
    return jgf_end(seconds, ITERATIONS, "Iterations", is_right);
}
