/* What the kernels have in common: sizes, blocks, Java's random numbers, and the lines of results in the form of the
 * Java Grande Forum's MPJ benchmarks, section 2. */
#ifndef JGF_H
#define JGF_H

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's name, and what runs it. */
static const char *jgf_kernel;
static int jgf_rank, jgf_processes, jgf_size;

/* Ends the job because of something that all processes have found. */
static void jgf_fail(const char *text)
{
    if (jgf_rank == 0) {
        fprintf(stderr, "%s: %s\n", jgf_kernel, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Starts MPI; the index of the size that the first argument names: 0, 1, 2 for A, B, C. */
static int jgf_start(const char *kernel, int argc, char **argv)
{
    jgf_kernel = kernel;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &jgf_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &jgf_processes);
    const char *size = argc > 1 ? argv[1] : "A";
    if (strlen(size) != 1 || size[0] < 'A' || size[0] > 'C')
        jgf_fail("there is no such size; give A, B or C");
    return jgf_size = size[0] - 'A';
}

static void *jgf_allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "%s: rank %d has not enough memory\n", jgf_kernel, jgf_rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* Elements of each block but the last one, if n are dealt to the processes in multiples of the granule. */
static inline int jgf_block(int n, int granule)
{
    int grains = n / granule;
    int block = (grains + jgf_processes - 1) / jgf_processes * granule;
    if ((int64_t)block * (jgf_processes - 1) >= n)
        jgf_fail("nothing is left for the last process; use fewer");
    return block;
}

/* Elements of a rank's block. */
static inline int jgf_share(int n, int block, int rank)
{
    return rank < jgf_processes - 1 ? block : n - block * rank;
}

/* The generator of java.util.Random. */
typedef struct {
    uint64_t state;
} jgf_random;

static inline jgf_random jgf_seed(uint64_t seed)
{
    return (jgf_random){(seed ^ 0x5DEECE66DULL) & ((1ULL << 48) - 1)};
}

static inline int32_t jgf_next(jgf_random *random, int bits)
{
    random->state = (random->state * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
    return (int32_t)(uint32_t)(random->state >> (48 - bits));
}

static inline double jgf_next_double(jgf_random *random)
{
    int64_t high = (int64_t)jgf_next(random, 26) << 27;
    return (double)(high + jgf_next(random, 27)) * 0x1p-53;
}

/* Writes the result of rank 0, and ends MPI; the exit code. */
static int jgf_end(double seconds, double operations, const char *unit, int is_right)
{
    if (jgf_rank == 0) {
        printf("Section2:%s:Kernel:Size%c\t%.3f (s)\t%.4g\t(%s/s)\n", jgf_kernel, 'A' + jgf_size, seconds,
               operations / seconds, unit);
        if (!is_right)
            fprintf(stderr, "Validation failed\n");
    }
    MPI_Bcast(&is_right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return !is_right;
}

#endif
