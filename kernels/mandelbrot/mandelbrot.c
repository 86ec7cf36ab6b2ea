/* The Mandelbrot set by blocks of columns; the twin of mandelbrot.py, and of escape.py for the numbers. */
#include "../common/kernel.h"
#include <stdint.h>

/* The values of the columns `first` to `last`, a row for each column. */
static void columns(int n, int first, int last, int limit, int16_t *result)
{
    const double step = 3.0 / (n - 1);
    for (int column = first; column < last; column++)
        for (int row = 0; row < n; row++) {
            const double real = -2.25 + step * column, imaginary = -1.5 + step * row;
            double x = real, y = imaginary, xx = x * x, yy = y * y;
            int count = 1;
            while (count < limit && !(xx + yy > 4)) {
                y = 2 * (x * y) + imaginary;
                x = xx - yy + real;
                xx = x * x;
                yy = y * y;
                count++;
            }
            *result++ = (int16_t)count;
        }
}

int main(int argc, char **argv)
{
    int n = 800, limit = 100;
    const struct kernel_option options[] = {
        {"--n", KERNEL_INT, &n, "points in each direction (default 800; the paper's size is 4800)"},
        {"--limit", KERNEL_INT, &limit, "largest number of steps for a point (default 100)"},
        {0},
    };
    kernel_start(argc, argv, "mandelbrot", "the Mandelbrot set", options);
    if (n < 2 || n > 40000 || limit < 2 || limit > 32767)
        kernel_refuse("--n must be from 2 to 40000, --limit from 2 to 32767");
    if (kernel.size > n)
        kernel_refuse("%d processes are too many for %d columns", kernel.size, n);
    int *counts = kernel_allocate(sizeof(int) * (size_t)kernel.size),
        *places = kernel_allocate(sizeof(int) * (size_t)kernel.size);
    for (int rank = 0; rank < kernel.size; rank++) {
        places[rank] = kernel_share(n, kernel.size, rank) * n;
        counts[rank] = kernel_share(n, kernel.size, rank + 1) * n - places[rank];
    }
    int16_t *mine = kernel_allocate(sizeof *mine * (size_t)counts[kernel.rank]), *picture = NULL;
    if (kernel.rank == 0)
        picture = kernel_allocate(sizeof *picture * (size_t)n * (size_t)n);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    columns(n, places[kernel.rank] / n, (places[kernel.rank] + counts[kernel.rank]) / n, limit, mine);
    MPI_Gatherv(mine, counts[kernel.rank], MPI_INT16_T, picture, counts, places, MPI_INT16_T, 0, MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - begin;
    bool right = true;
    if (kernel.rank == 0) {
        int16_t *again = kernel_allocate(sizeof *again * (size_t)n);
        for (int k = 0; k < 16; k++) {
            const int column = (int)((long)(n - 1) * k / 15);
            columns(n, column, column + 1, limit, again);
            right = right && !memcmp(again, picture + (size_t)column * (size_t)n, sizeof *again * (size_t)n);
        }
        free(again);
    }
    char x[64];
    snprintf(x, sizeof x, "\"n\":%d,\"limit\":%d", n, limit);
    kernel_report("mandelbrot", "time", "s", seconds, 0, right, x);
    free(picture);
    free(mine);
    free(counts);
    free(places);
    return kernel_end();
}
