/* Linpack with partial pivoting: as LuFact.java, with columns as vectors where that has objects. */
#include "jgf.h"

enum { TAG = 10 };

static const int sizes[] = {500, 1000, 2000};
static const double limits[] = {6, 12, 20};

/* The matrix by columns of n + 1 elements, and b; the largest element. */
static double generate(double *a, double *b, int n)
{
    int seed = 1325;
    double largest = 0;
    memset(b, 0, n * sizeof *b);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            seed = 3125 * seed % 65536;
            double value = (seed - 32768.0) / 16384.0;
            a[(size_t)j * (n + 1) + i] = value;
            largest = value > largest ? value : largest;
            b[i] += value;
        }
    return largest;
}

static void swap(double *column, int i, int k)
{
    double value = column[i];
    column[i] = column[k];
    column[k] = value;
}

static void add(double factor, const double *restrict from, double *restrict to, int begin, int end)
{
    for (int i = begin; i < end; i++)
        to[i] += factor * from[i];
}

static int largest_in(const double *column, int from, int n)
{
    int found = from;
    for (int i = from + 1; i < n; i++)
        if (fabs(column[i]) > fabs(column[found]))
            found = i;
    return found;
}

static void factor(double *own, int columns, int *pivots, int n)
{
    double *column = jgf_allocate(n + 1, sizeof(double));
    int pivot = 0;
    for (int k = 0; k < n - 1; k++) {
        int owner = k % jgf_processes;
        if (jgf_rank == owner) {
            double *mine = own + (size_t)(k / jgf_processes) * (n + 1);
            pivot = largest_in(mine, k, n);
            swap(mine, k, pivot);
            double scale = mine[k] != 0 ? -1 / mine[k] : 1;
            for (int i = k + 1; i < n; i++)
                mine[i] *= scale;
            memcpy(column, mine, (n + 1) * sizeof *mine);
        }
        MPI_Bcast(column, n + 1, MPI_DOUBLE, owner, MPI_COMM_WORLD);
        MPI_Bcast(&pivot, 1, MPI_INT, owner, MPI_COMM_WORLD);
        pivots[k] = pivot;
        for (int c = k / jgf_processes; c < columns; c++)
            if (c * jgf_processes + jgf_rank > k) {
                double *theirs = own + (size_t)c * (n + 1);
                swap(theirs, k, pivot);
                add(theirs[k], column, theirs, k + 1, n);
            }
    }
    free(column);
}

static void solve(const double *a, double *b, const int *pivots, int n)
{
    for (int k = 0; k < n - 1; k++) {
        swap(b, k, pivots[k]);
        add(b[k], a + (size_t)k * (n + 1), b, k + 1, n);
    }
    for (int k = n - 1; k >= 0; k--) {
        b[k] /= a[(size_t)k * (n + 1) + k];
        add(-b[k], a + (size_t)k * (n + 1), b, 0, k);
    }
}

static double largest_of(const double *vector, int n)
{
    double found = 0;
    for (int i = 0; i < n; i++)
        found = fabs(vector[i]) <= found ? found : fabs(vector[i]); /* no number is the largest */
    return found;
}

static int is_singular(const double *factors, int n)
{
    for (int k = 0; k < n; k++)
        if (factors[(size_t)k * (n + 1) + k] == 0)
            return 1;
    return 0;
}

/* Subtracts from b the product of the factors and a vector of ones, which b is for the matrix itself. */
static void subtract_product(const double *factors, const int *pivots, double *b, int n)
{
    double *product = jgf_allocate(n + 1, sizeof(double));
    for (int c = 0; c < n; c++)
        add(1, factors + (size_t)c * (n + 1), product, 0, c + 1);
    for (int k = n - 2; k >= 0; k--) {
        add(-product[k], factors + (size_t)k * (n + 1), product, k + 1, n);
        swap(product, k, pivots[k]);
    }
    add(-1, product, b, 0, n);
    free(product);
}

/* How well x solves the system, or else the factors make up the matrix (see LuFact.java), in units of the rounding
 * error. */
static double residual(const double *factors, const double *x, const int *pivots, int n)
{
    double *b = jgf_allocate(n + 1, sizeof(double)), *a = jgf_allocate((size_t)n * (n + 1), sizeof(double));
    double norm = generate(a, b, n), scale = 1;
    if (is_singular(factors, n)) {
        subtract_product(factors, pivots, b, n);
    } else {
        scale = largest_of(x, n);
        for (int c = 0; c < n; c++)
            add(-x[c], a + (size_t)c * (n + 1), b, 0, n);
    }
    double found = largest_of(b, n) / (n * norm * scale * 0x1p-52);
    free(a);
    free(b);
    return found;
}

int main(int argc, char **argv)
{
    int size = jgf_start("LUFact", argc, argv), n = sizes[size];
    int columns = (n - jgf_rank + jgf_processes - 1) / jgf_processes;
    double *all = jgf_allocate(jgf_rank ? 0 : (size_t)n * (n + 1), sizeof(double));
    double *own = jgf_allocate((size_t)columns * (n + 1), sizeof(double)), *b = jgf_allocate(n + 1, sizeof(double));
    int *pivots = jgf_allocate(n, sizeof(int)), *table = jgf_allocate(n, sizeof(int));
    if (jgf_rank == 0)
        generate(all, b, n);
    for (int c = 0; c < n; c++) {
        int owner = c % jgf_processes;
        double *column = own + (size_t)(c / jgf_processes) * (n + 1);
        if (jgf_rank == 0 && owner == 0)
            memcpy(column, all + (size_t)c * (n + 1), (n + 1) * sizeof(double));
        else if (jgf_rank == 0)
            MPI_Send(all + (size_t)c * (n + 1), n + 1, MPI_DOUBLE, owner, TAG, MPI_COMM_WORLD);
        else if (jgf_rank == owner)
            MPI_Recv(column, n + 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    /* Which process has a column, and where: known to all here, sent in the original. */
    MPI_Bcast(table, n, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(table, n, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    factor(own, columns, pivots, n);
    for (int c = 0; c < n; c++) {
        int owner = c % jgf_processes;
        double *column = own + (size_t)(c / jgf_processes) * (n + 1);
        if (jgf_rank == 0 && owner == 0)
            memcpy(all + (size_t)c * (n + 1), column, (n + 1) * sizeof(double));
        else if (jgf_rank == 0)
            MPI_Recv(all + (size_t)c * (n + 1), n + 1, MPI_DOUBLE, owner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (jgf_rank == owner)
            MPI_Send(column, n + 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    }
    if (jgf_rank == 0)
        solve(all, b, pivots, n);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;
    int is_right = jgf_rank || residual(all, b, pivots, n) <= limits[size];
    return jgf_end(seconds, (2.0 * n * n * n / 3 + 2.0 * n * n) / 1e6, "Mflops", is_right);
}
