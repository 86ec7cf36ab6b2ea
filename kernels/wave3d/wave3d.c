/* The wave equation in three dimensions; the twin of wave3d.py, which says which equation, and stencil.py which
 * scheme. */
#include "../common/kernel.h"

static struct block block;
static double *now, *before, *mode;

static inline size_t at(int i, int j, int k)
{
    return ((size_t)i * (size_t)(block.shape[1] + 2) + (size_t)j) * (size_t)(block.shape[2] + 2) + (size_t)k;
}

/* Put the new values in the place of those before, at the points of a box: first and one-past-last own point in each
 * direction. */
static void step(const double *restrict u, double *restrict after, double weight, int box[3][2])
{
    const double middle = 2 - 6 * weight;
    const size_t row = at(0, 1, 0), plane = at(1, 0, 0);
    for (int i = box[0][0] + 1; i <= box[0][1]; i++)
        for (int j = box[1][0] + 1; j <= box[1][1]; j++) {
            const size_t first = at(i, j, box[2][0] + 1);
            const double *c = u + first;
            double *a = after + first;
            for (int k = 0; k < box[2][1] - box[2][0]; k++)
                a[k] = weight * (c[k - (long)plane] + c[k + (long)plane] + c[k - (long)row] + c[k + (long)row] +
                                 c[k - 1] + c[k + 1]) +
                       middle * c[k] - a[k];
        }
}

/* Mirror images in the ghost layers beyond the walls. */
static void reflect(double *u)
{
    for (int axis = 0; axis < 3; axis++)
        for (int side = 0; side < 2; side++) {
            if ((side ? block.above : block.below)[axis] != MPI_PROC_NULL)
                continue;
            int ghost = side ? block.shape[axis] + 1 : 0, inside = side ? block.shape[axis] - 1 : 2, other[2], ends[2];
            for (int o = 0, n = 0; o < 3; o++)
                if (o != axis) {
                    other[n] = o;
                    ends[n++] = block.shape[o] + 1;
                }
            for (int p = 0; p <= ends[0]; p++)
                for (int q = 0; q <= ends[1]; q++) {
                    int to[3], from[3];
                    to[axis] = ghost;
                    from[axis] = inside;
                    to[other[0]] = from[other[0]] = p;
                    to[other[1]] = from[other[1]] = q;
                    u[at(to[0], to[1], to[2])] = u[at(from[0], from[1], from[2])];
                }
        }
}

/* The inner box, which needs no neighbour, and the boxes around it that do; gives the number of the latter. */
static int cut(int inner[3][2], int shell[6][3][2])
{
    int boxes = 0;
    for (int axis = 0; axis < 3; axis++) {
        inner[axis][0] = 0;
        inner[axis][1] = block.shape[axis];
    }
    for (int axis = 0; axis < 3; axis++)
        for (int side = 0; side < 2; side++)
            if ((side ? block.above : block.below)[axis] != MPI_PROC_NULL && inner[axis][0] < inner[axis][1]) {
                memcpy(shell[boxes], inner, sizeof shell[boxes]);
                int layer = side ? inner[axis][1] - 1 : inner[axis][0];
                shell[boxes][axis][0] = layer;
                shell[boxes][axis][1] = layer + 1;
                inner[axis][side] += side ? -1 : 1;
                boxes++;
            }
    return boxes;
}

static double largest_error(double phase)
{
    double error = 0;
    for (int i = 1; i <= block.shape[0]; i++)
        for (int j = 1; j <= block.shape[1]; j++)
            for (int k = 1; k <= block.shape[2]; k++) {
                double difference = fabs(cos(phase) * mode[at(i, j, k)] - now[at(i, j, k)]);
                if (!(difference <= error)) /* a NaN stays */
                    error = difference;
            }
    return error;
}

int main(int argc, char **argv)
{
    int n = 129, steps = 0;
    double dt = 0;
    bool overlap = false;
    const struct kernel_option options[] = {
        {"--n", KERNEL_INT, &n, "mesh points in each direction (default 129)"},
        {"--dt", KERNEL_REAL, &dt, "time step (default: as in the paper for 129 and 257, else just stable)"},
        {"--steps", KERNEL_INT, &steps, "number of steps (default: as in the paper, else until t = 2)"},
        {"--overlap", KERNEL_FLAG, &overlap, "non-blocking: compute while faces travel"},
        {0},
    };
    kernel_start(argc, argv, "wave3d", "the wave equation in three dimensions", options);
    if (n < 3)
        kernel_refuse("--n %d: at least 3 points are needed in each direction", n);
    const double h = 1.0 / (n - 1), stable = h / sqrt(3), pi = acos(-1);
    const bool paper = dt == 0 && (n == 129 || n == 257);
    if (dt == 0)
        dt = n == 129 ? 0.004510 : n == 257 ? 0.002255 : 0.9999 * stable;
    if (dt < 0 || dt > stable)
        kernel_refuse("--dt %g: the scheme is stable only up to %.6g on this mesh", dt, stable);
    if (steps == 0)
        steps = paper ? (n == 129 ? 444 : 887) : (int)ceil(2 / dt);
    if (steps < 1)
        kernel_refuse("--steps must be at least 1");

    block_make(&block, 3, n);
    size_t bytes = sizeof(double) * at(block.shape[0] + 2, 0, 0);
    now = kernel_allocate(bytes);
    before = kernel_allocate(bytes);
    mode = kernel_allocate(bytes);
    int inner[3][2], shell[6][3][2], boxes = cut(inner, shell),
                                     whole[3][2] = {{0, block.shape[0]}, {0, block.shape[1]}, {0, block.shape[2]}};
    double begin = 0;
    for (int done = -1; done < steps; done++) { /* the first turn, on zeros, warms up */
        if (done == 0) {
            for (int i = 1; i <= block.shape[0]; i++)
                for (int j = 1; j <= block.shape[1]; j++)
                    for (int k = 1; k <= block.shape[2]; k++)
                        mode[at(i, j, k)] = 2 * cos(pi * h * (block.start[0] + i - 1)) *
                                            cos(pi * h * (block.start[1] + j - 1)) *
                                            cos(pi * h * (block.start[2] + k - 1));
            memcpy(now, mode, bytes);
            memcpy(before, mode, bytes);
            MPI_Barrier(block.cart);
            begin = MPI_Wtime();
        }
        double weight = dt / h * dt / h / (done == 0 ? 2 : 1);
        if (overlap) {
            MPI_Request requests[12];
            block_exchange_start(&block, now, requests);
            reflect(now);
            step(now, before, weight, inner);
            MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
            if (block.shape[0] == 1 || block.shape[1] == 1 || block.shape[2] == 1)
                reflect(now); /* the mirror image of the layer inside is then that of a neighbour's */
            for (int k = 0; k < boxes; k++)
                step(now, before, weight, shell[k]);
        } else {
            block_exchange(&block, now);
            reflect(now);
            step(now, before, weight, whole);
        }
        double *oldest = before;
        before = now;
        now = oldest;
    }
    double seconds = MPI_Wtime() - begin, error = largest_error(2 * asin(sqrt(3) * dt / h * sin(pi * h / 2)) * steps),
           worst, longest;
    error = isnan(error) ? INFINITY : error;
    MPI_Reduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, block.cart);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, block.cart);
    char x[128];
    snprintf(x, sizeof x, "\"n\":%d,\"kernel\":\"c\",\"mode\":\"%s\"", n, overlap ? "non-blocking" : "blocking");
    kernel_report("wave3d", "time", "s", longest, 0, worst <= 1e-10, x);
    free(now);
    free(before);
    free(mode);
    block_free(&block);
    return kernel_end();
}
