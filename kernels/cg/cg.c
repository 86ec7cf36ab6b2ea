/* The Poisson equation in two dimensions by conjugate gradients; the twin of cg.py, and of poisson.py for the
 * matrix. */
#include "../common/kernel.h"

static struct block block;
static int points, width, *starts, *columns;
static double *values, *padded;

/* The block's rows: own points times points of the padded array. Neighbours beyond the boundary have no entry. */
static void make_matrix(void)
{
    starts = kernel_allocate(sizeof(int) * (size_t)(points + 1));
    columns = kernel_allocate(sizeof(int) * 5 * (size_t)points);
    values = kernel_allocate(sizeof(double) * 5 * (size_t)points);
    int row = 0, entry = 0;
    for (int i = 1; i <= block.shape[0]; i++)
        for (int j = 1; j <= block.shape[1]; j++) {
            const int own = i * width + j, place[5] = {own - width, own - 1, own, own + 1, own + width};
            const bool wall[5] = {i == 1 && block.below[0] == MPI_PROC_NULL, j == 1 && block.below[1] == MPI_PROC_NULL,
                                  false, j == block.shape[1] && block.above[1] == MPI_PROC_NULL,
                                  i == block.shape[0] && block.above[0] == MPI_PROC_NULL};
            for (int k = 0; k < 5; k++)
                if (!wall[k]) {
                    columns[entry] = place[k];
                    values[entry++] = k == 2 ? 4 : -1;
                }
            starts[++row] = entry;
        }
}

static void product(const double *restrict x, double *restrict result)
{
    for (int i = 0; i < block.shape[0]; i++)
        memcpy(padded + (i + 1) * width + 1, x + (size_t)i * (size_t)block.shape[1],
               sizeof(double) * (size_t)block.shape[1]);
    block_exchange(&block, padded);
    for (int row = 0; row < points; row++) {
        double sum = 0;
        for (int entry = starts[row]; entry < starts[row + 1]; entry++)
            sum += values[entry] * padded[columns[entry]];
        result[row] = sum;
    }
}

static double inner(const double *restrict a, const double *restrict b)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < points; i++)
        sum += a[i] * b[i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, block.cart);
    return sum;
}

/* Iterate from x = b; gives the number of iterations. */
static int solve(const double *b, double *x, double *r, double *p, double *v, double tolerance, int most)
{
    memcpy(x, b, sizeof(double) * (size_t)points);
    product(x, v);
    for (int i = 0; i < points; i++)
        p[i] = r[i] = b[i] - v[i];
    double rho = inner(r, r), first = rho;
    int iterations = 0;
    for (; rho > tolerance * first && iterations < most; iterations++) {
        product(p, v);
        const double length = rho / inner(p, v);
        for (int i = 0; i < points; i++) {
            x[i] += length * p[i];
            r[i] -= length * v[i];
        }
        const double last = rho;
        rho = inner(r, r);
        for (int i = 0; i < points; i++)
            p[i] = r[i] + rho / last * p[i];
    }
    return iterations;
}

int main(int argc, char **argv)
{
    int n = 257, most = 0;
    double tolerance = 1e-8;
    const struct kernel_option options[] = {
        {"--n", KERNEL_INT, &n, "mesh points in each direction (default 257)"},
        {"--tolerance", KERNEL_REAL, &tolerance, "of rho_k/rho_0 (default 1e-8)"},
        {"--most", KERNEL_INT, &most, "largest number of iterations (default 10 n)"},
        {0},
    };
    kernel_start(argc, argv, "cg", "the Poisson equation by conjugate gradients", options);
    if (n < 2 || n > 20000 || !(tolerance > 0 && tolerance < 1) || most < 0)
        kernel_refuse("--n must be from 2 to 20000, --tolerance between 0 and 1, --most not negative");
    block_make(&block, 2, n);
    points = block.shape[0] * block.shape[1];
    width = block.shape[1] + 2;
    const size_t bytes = sizeof(double) * (size_t)points;
    padded = kernel_allocate(sizeof(double) * (size_t)(block.shape[0] + 2) * (size_t)width);
    double *b = kernel_allocate(bytes), *exact = kernel_allocate(bytes), *x = kernel_allocate(bytes),
           *r = kernel_allocate(bytes), *p = kernel_allocate(bytes), *v = kernel_allocate(bytes);
    make_matrix();
    const double h = 1.0 / (n + 1);
    for (int i = 0; i < block.shape[0]; i++)
        for (int j = 0; j < block.shape[1]; j++) {
            const double s = h * (block.start[0] + i + 1), t = h * (block.start[1] + j + 1), fs = s * (1 - s),
                         ft = t * (1 - t);
            exact[i * block.shape[1] + j] = fs * ft;
            b[i * block.shape[1] + j] = 2 * h * h * (fs + ft);
        }
    solve(b, x, r, p, v, tolerance, 2);
    MPI_Barrier(block.cart);
    const double begin = MPI_Wtime();
    const int iterations = solve(b, x, r, p, v, tolerance, most ? most : 10 * n);
    MPI_Barrier(block.cart);
    const double seconds = MPI_Wtime() - begin;

    product(b, v);
    for (int i = 0; i < points; i++)
        r[i] = b[i] - v[i];
    const double first = inner(r, r);
    product(x, v);
    for (int i = 0; i < points; i++) {
        r[i] = b[i] - v[i];
        p[i] = x[i] - exact[i];
    }
    const double left = inner(r, r) / first, distance = sqrt(inner(p, p) / inner(exact, exact));
    const bool right = left <= 1.01 * tolerance && distance <= sqrt(tolerance);
    char parameters[64];
    snprintf(parameters, sizeof parameters, "\"n\":%d", n);
    kernel_report("cg", "time", "s", seconds, 0, right, parameters);
    kernel_report("cg", "iterations", "iterations", iterations, 0, right, parameters);
    double *all[] = {padded, b, exact, x, r, p, v, values};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    free(starts);
    free(columns);
    block_free(&block);
    return kernel_end();
}
