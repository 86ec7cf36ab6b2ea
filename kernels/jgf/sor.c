/* Red-black successive over-relaxation: as Sor.java, with rows one after the other where that has objects. */
#include "jgf.h"

enum { ITERATIONS = 100 };

static const int sizes[] = {1000, 1500, 2000};
static const double reference[] = {0.498574406322512, 1.1234778980135105, 1.9954895063582696};
static const double omega = 1.25;

static void relax(double *own, int rows, int first, int n)
{
    double quarter = omega * 0.25, rest = 1 - omega;
    for (int sweep = 0; sweep < 2 * ITERATIONS; sweep++) {
        for (int i = 1; i <= rows; i++) {
            int row = first + i - 1;
            if (row == 0 || row == n - 1)
                continue;
            double *here = own + (size_t)i * n, *above = here - n, *below = here + n;
            for (int j = 1 + (row + 1 + sweep) % 2; j < n - 1; j += 2)
                here[j] = quarter * (above[j] + below[j] + here[j - 1] + here[j + 1]) + rest * here[j];
        }
        double *last = own + (size_t)rows * n;
        if (jgf_rank < jgf_processes - 1)
            MPI_Sendrecv(last, n, MPI_DOUBLE, jgf_rank + 1, 1, last + n, n, MPI_DOUBLE, jgf_rank + 1, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        if (jgf_rank > 0)
            MPI_Sendrecv(own + n, n, MPI_DOUBLE, jgf_rank - 1, 2, own, n, MPI_DOUBLE, jgf_rank - 1, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int size = jgf_start("SOR", argc, argv), n = sizes[size];
    int block = jgf_block(n, 2), mine = jgf_share(n, block, jgf_rank);
    double *all = jgf_allocate(jgf_rank ? 0 : (size_t)n * n, sizeof(double));
    /* With the rows of the neighbours before and behind. */
    double *own = jgf_allocate((size_t)(block + 2) * n, sizeof(double));
    if (jgf_rank == 0) {
        jgf_random random = jgf_seed(10101010);
        for (size_t i = 0; i < (size_t)n * n; i++)
            all[i] = jgf_next_double(&random) * 1e-6;
        int rows = block + 1 < n ? block + 1 : n;
        memcpy(own + n, all, (size_t)rows * n * sizeof(double));
        for (int k = 1; k < jgf_processes; k++) {
            rows = jgf_share(n, block, k) + (k == jgf_processes - 1 ? 1 : 2);
            MPI_Send(all + (size_t)(k * block - 1) * n, rows * n, MPI_DOUBLE, k, k, MPI_COMM_WORLD);
        }
    } else {
        MPI_Recv(own, (block + 2) * n, MPI_DOUBLE, 0, jgf_rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    relax(own, mine, jgf_rank * block, n);
    MPI_Barrier(MPI_COMM_WORLD);
    if (jgf_rank == 0) {
        memcpy(all, own + n, (size_t)mine * n * sizeof(double));
        for (int k = 1; k < jgf_processes; k++)
            MPI_Recv(all + (size_t)k * block * n, jgf_share(n, block, k) * n, MPI_DOUBLE, k, k, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else {
        MPI_Ssend(own + n, mine * n, MPI_DOUBLE, 0, jgf_rank, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin, sum = 0;
    for (int i = 1; i < n - 1 && jgf_rank == 0; i++)
        for (int j = 1; j < n - 1; j++)
            sum += all[(size_t)i * n + j];
    return jgf_end(seconds, ITERATIONS, "Iterations", jgf_rank || fabs(sum - reference[size]) <= 1e-12);
}
