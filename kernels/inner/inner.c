/* The inner product of two vectors on several processes; the twin of inner.py. */
#include "../common/kernel.h"

static double product(const double *restrict a, const double *restrict b, int count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

int main(int argc, char **argv)
{
    int n = 1 << 18, repeat = 100;
    const struct kernel_option options[] = {
        {"--n", KERNEL_INT, &n, "number of elements (default 2^18)"},
        {"--repeat", KERNEL_INT, &repeat, "inner products that are timed together (default 100)"},
        {0},
    };
    kernel_start(argc, argv, "inner", "inner product of two vectors", options);
    if (n < 1 || repeat < 1)
        kernel_refuse("--n and --repeat must be at least 1");
    int first = kernel_share(n, kernel.size, kernel.rank), last = kernel_share(n, kernel.size, kernel.rank + 1),
        count = last - first;
    double *a = kernel_allocate(sizeof(double) * (size_t)(count + 1)),
           *b = kernel_allocate(sizeof(double) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        a[i] = (first + i) % 1000;
        b[i] = (first + i) % 7 + 1;
    }
    double exact = 0, mine, result = 0, begin = 0;
    for (int i = 0; i < n; i++)
        exact += (double)((i % 1000) * (i % 7 + 1));
    for (int round = -1; round < repeat; round++) {
        if (round == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
        }
        mine = product(a, b, count);
        MPI_Reduce(&mine, &result, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = (MPI_Wtime() - begin) / repeat;
    char x[64];
    snprintf(x, sizeof x, "\"n\":%d", n);
    kernel_report("inner", "time", "s", seconds, 0, result == exact, x);
    free(a);
    free(b);
    return kernel_end();
}
