/* Fourier coefficients of (x + 1)^x on [0, 2]: as Series.java. */
#include "jgf.h"

enum { POINTS = 1000 };
typedef enum { PLAIN, COS, SIN } kind;

static const int sizes[] = {10000, 100000, 1000000};
static const double reference[4][2] = {{2.8729524964837996, 0.0},
                                       {1.1161046676147888, -1.8819691893398025},
                                       {0.34429060398168704, -1.1645642623320958},
                                       {0.15238898702519288, -0.8143461113044298}};

static double function(double x, double omega, kind which)
{
    double value = pow(x + 1, x);
    return which == PLAIN ? value : value * (which == COS ? cos(omega * x) : sin(omega * x));
}

static double integral(double omega, kind which)
{
    double dx = 2.0 / POINTS, sum = function(0, omega, which) / 2, x = 0;
    for (int i = 0; i < POINTS - 2; i++) {
        x += dx;
        sum += function(x, omega, which);
    }
    return (sum + function(2, omega, which) / 2) * dx;
}

static void collect(double *own, double *all, int n, int block, int mine, int tag)
{
    if (jgf_rank > 0) {
        MPI_Ssend(own, mine, MPI_DOUBLE, 0, jgf_rank + tag, MPI_COMM_WORLD);
        return;
    }
    memcpy(all, own, mine * sizeof *own);
    for (int k = 1; k < jgf_processes; k++) {
        MPI_Recv(own, block, MPI_DOUBLE, k, k + tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(all + (size_t)k * block, own, jgf_share(n, block, k) * sizeof *own);
    }
}

int main(int argc, char **argv)
{
    int n = sizes[jgf_start("Series", argc, argv)];
    int block = jgf_block(n, 1), mine = jgf_share(n, block, jgf_rank);
    double *own[2], *all[2];
    for (int part = 0; part < 2; part++) {
        own[part] = jgf_allocate(block, sizeof(double));
        all[part] = jgf_allocate(jgf_rank ? 0 : n, sizeof(double));
    }
    double begin = MPI_Wtime();
    for (int i = jgf_rank == 0; i < mine; i++) {
        double omega = 3.1415926535897932 * (i + block * jgf_rank);
        own[0][i] = integral(omega, COS);
        own[1][i] = integral(omega, SIN);
    }
    if (jgf_rank == 0)
        own[0][0] = integral(0, PLAIN) / 2;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int part = 0; part < 2; part++)
        collect(own[part], all[part], n, block, mine, part * jgf_processes);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;
    int is_right = 1;
    for (int i = 0; i < 4 && jgf_rank == 0; i++)
        for (int part = 0; part < 2; part++)
            is_right &= fabs(all[part][i] - reference[i][part]) <= 1e-12;
    return jgf_end(seconds, 2.0 * n - 1, "coefficients", is_right);
}
