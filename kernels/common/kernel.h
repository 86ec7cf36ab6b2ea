/* What the kernels in C share: options, blocks of a mesh, one voice for all processes.
 *
 * A kernel begins with `kernel_start` and ends with `return kernel_end()`. It prints a line for people, or with
 * --json a JSON object per measurement as the kernels in Python do. Exit codes: 0 the result is right, 1 it is
 * wrong, 2 the program cannot run like this.
 *
 * Portable C11 over MPI-3: the same source is compiled with every MPI library that is compared. */
#ifndef KERNEL_H
#define KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum kernel_kind { KERNEL_INT, KERNEL_REAL, KERNEL_FLAG, KERNEL_WORD };

/* An option and where its value goes: an int, a double, a bool or a const char pointer. A table of them ends with a
 * null name. */
struct kernel_option {
    const char *name;
    enum kernel_kind kind;
    void *value;
    const char *help;
};

static struct {
    const char *name;
    int rank, size;
    bool json, wrong;
} kernel;

/* Say on process 0 why the program cannot run, and end everywhere. To be called by all processes. */
__attribute__((format(printf, 1, 2), noreturn)) static void kernel_refuse(const char *format, ...)
{
    if (kernel.rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%s: ", kernel.name);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(2);
}

/* The value of an option with its text; false if that is no such value. */
static bool kernel_value(const struct kernel_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    if (option->kind == KERNEL_WORD) {
        *(const char **)option->value = text;
        return true;
    }
    if (option->kind == KERNEL_REAL)
        *(double *)option->value = strtod(text, &end);
    else
        *(int *)option->value = (int)strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* Start MPI and read the command line; `title` says what the program is. */
static void kernel_start(int argc, char **argv, const char *name, const char *title,
                         const struct kernel_option *options)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &kernel.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &kernel.size);
    kernel.name = name;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            kernel.json = true;
            continue;
        }
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
            if (kernel.rank == 0) {
                printf("%s: %s\n", name, title);
                for (const struct kernel_option *option = options; option->name; option++)
                    printf("  %-14s %s\n", option->name, option->help);
                printf("  %-14s %s\n", "--json", "print measurements as JSON, a line each");
            }
            MPI_Finalize();
            exit(0);
        }
        const struct kernel_option *option = options;
        while (option->name && strcmp(argv[i], option->name))
            option++;
        if (!option->name)
            kernel_refuse("there is no option %s; --help lists them", argv[i]);
        if (option->kind == KERNEL_FLAG) {
            *(bool *)option->value = true;
            continue;
        }
        if (i + 1 == argc || !kernel_value(option, argv[i + 1]))
            kernel_refuse("%s needs a %s after it", option->name, option->kind == KERNEL_WORD ? "word" : "number");
        i++;
    }
}

static const char *kernel_number(int value)
{
    static char text[16];
    snprintf(text, sizeof text, "%d", value);
    return text;
}

/* Report a measurement, on process 0. `x` is the inside of a JSON object with further parameters. */
static void kernel_report(const char *bench, const char *metric, const char *unit, double value, int bytes,
                          bool verified, const char *x)
{
    if (kernel.rank != 0)
        return;
    if (!verified)
        kernel.wrong = true;
    if (kernel.json)
        printf("{\"bench\":\"%s\",\"bytes\":%d,\"ranks\":%d,\"metric\":\"%s\",\"unit\":\"%s\",\"samples\":[%.9g],"
               "\"verified\":%s,"
               "\"x\":{\"module\":\"c\"%s%s}}\n",
               bench, bytes, kernel.size, metric, unit, value, verified ? "true" : "false", *x ? "," : "", x);
    else
        printf("%s%s%s, %d processes: %s %.6g %s, %s\n", bench, bytes ? " " : "", bytes ? kernel_number(bytes) : "",
               kernel.size, metric, value, unit, verified ? "passed" : "FAILED");
    fflush(stdout);
}

/* End MPI; give the exit code, the same everywhere. */
static int kernel_end(void)
{
    int wrong = kernel.wrong;
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong;
}

/* First of `n` points for part `part` of `parts` nearly equal parts. */
static inline int kernel_share(int n, int parts, int part)
{
    return (int)((long)n * part / parts);
}

/* Zeroed memory, freed by `free`. Large arrays lie on huge pages if the system allows, as NumPy's do. */
static inline void *kernel_allocate(size_t bytes)
{
    const size_t huge = (size_t)1 << 21;
    void *memory = bytes < 2 * huge ? malloc(bytes) : aligned_alloc(huge, (bytes + huge - 1) / huge * huge);
    if (!memory) {
        fprintf(stderr, "%s: no memory for %zu bytes\n", kernel.name, bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (bytes >= 2 * huge)
        madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes);
}

/* --- blocks of a mesh, with one layer of ghost points ------------------------------------------------------------- */

/* `below` and `above` are ranks, MPI_PROC_NULL beyond a wall. `types[axis]`: the layers ghost, own, own, ghost
 * across an axis. */
struct block {
    int axes, n;
    int dims[3], coords[3], start[3], shape[3], below[3], above[3];
    MPI_Comm cart;
    MPI_Datatype types[3][4];
};

static inline void block_make(struct block *block, int axes, int n)
{
    int periods[3] = {0, 0, 0}, padded[3], layer[3], corner[3];
    memset(block, 0, sizeof *block);
    block->axes = axes;
    block->n = n;
    MPI_Dims_create(kernel.size, axes, block->dims);
    if (block->dims[0] > n)
        kernel_refuse("%d processes are too many for %d points in each direction", kernel.size, n);
    MPI_Cart_create(MPI_COMM_WORLD, axes, block->dims, periods, 0, &block->cart);
    MPI_Cart_coords(block->cart, kernel.rank, axes, block->coords);
    for (int axis = 0; axis < axes; axis++) {
        MPI_Cart_shift(block->cart, axis, 1, &block->below[axis], &block->above[axis]);
        block->start[axis] = kernel_share(n, block->dims[axis], block->coords[axis]);
        block->shape[axis] = kernel_share(n, block->dims[axis], block->coords[axis] + 1) - block->start[axis];
        padded[axis] = block->shape[axis] + 2;
    }
    for (int axis = 0; axis < axes; axis++) {
        int places[4] = {0, 1, block->shape[axis], block->shape[axis] + 1};
        for (int k = 0; k < 4; k++) {
            for (int other = 0; other < axes; other++) {
                layer[other] = other == axis ? 1 : block->shape[other];
                corner[other] = other == axis ? places[k] : 1;
            }
            MPI_Type_create_subarray(axes, padded, layer, corner, MPI_ORDER_C, MPI_DOUBLE, &block->types[axis][k]);
            MPI_Type_commit(&block->types[axis][k]);
        }
    }
}

/* Fill the ghost layers from the neighbours. */
static inline void block_exchange(const struct block *block, double *u)
{
    for (int axis = 0; axis < block->axes; axis++) {
        const MPI_Datatype *type = block->types[axis];
        MPI_Sendrecv(u, 1, type[2], block->above[axis], axis, u, 1, type[0], block->below[axis], axis, block->cart,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(u, 1, type[1], block->below[axis], axis, u, 1, type[3], block->above[axis], axis, block->cart,
                     MPI_STATUS_IGNORE);
    }
}

/* Begin the same; `requests` has room for 4 per axis, all of which are to be waited for. */
static inline void block_exchange_start(const struct block *block, double *u, MPI_Request *requests)
{
    for (int axis = 0; axis < block->axes; axis++) {
        const MPI_Datatype *type = block->types[axis];
        MPI_Irecv(u, 1, type[0], block->below[axis], axis, block->cart, requests++);
        MPI_Irecv(u, 1, type[3], block->above[axis], axis, block->cart, requests++);
        MPI_Isend(u, 1, type[2], block->above[axis], axis, block->cart, requests++);
        MPI_Isend(u, 1, type[1], block->below[axis], axis, block->cart, requests++);
    }
}

static inline void block_free(struct block *block)
{
    for (int axis = 0; axis < block->axes; axis++)
        for (int k = 0; k < 4; k++)
            MPI_Type_free(&block->types[axis][k]);
    MPI_Comm_free(&block->cart);
}

#endif
