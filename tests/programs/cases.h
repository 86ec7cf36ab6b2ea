/* What the programs of this folder share: one file has many small programs, its cases.
 *
 *     program --list          prints the names of the cases
 *     program CASE            runs one, with the error handlers that MPI sets
 *     program --record CASE   runs one; the handlers of MPI_COMM_WORLD and MPI_COMM_SELF print a line for each error,
 *                             `recorded RANK CLASS sentence`, and return. Afterwards MPI_COMM_WORLD must work as
 *                             before: the last line is `usable`.
 */
#ifndef LIMOSA_CASES_H
#define LIMOSA_CASES_H

#include <mpi.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define ANY MPI_STATUS_IGNORE

typedef struct {
    const char *name;
    void (*run)(void);
} named_case;

#define CASE(function) {#function, function}

static int rank, size, recording;

/* One line in one piece: the lines of several ranks go to the same pipe. */
static void UNUSED put_line(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        abort();
}

static void record(MPI_Comm *comm, int *code, ...)
{
    char name[MPI_MAX_ERROR_STRING], sentence[MPI_MAX_ERROR_STRING];
    int class, n;
    (void)comm;
    MPI_Error_class(*code, &class);
    MPI_Error_string(class, name, &n);
    name[strcspn(name, ":")] = 0;
    MPI_Error_string(*code, sentence, &n);
    put_line("recorded %d %s %s", rank, name, sentence);
}

/* Ends the job if a value is not the expected one: for correct programs. */
#define EXPECT(got, expected) expect(#got, (long)(got), (long)(expected))
static void UNUSED expect(const char *what, long got, long expected)
{
    if (got == expected)
        return;
    fprintf(stderr, "rank %d: %s is %ld instead of %ld\n", rank, what, got, expected);
    /* Not MPI_Abort: MPICH's launcher may end before it has passed the line on. */
    _exit(9);
}

static void UNUSED nap(double seconds)
{
    usleep((unsigned)(seconds * 1e6));
}

/* Computes, without a call of MPI. */
static void UNUSED compute(double seconds)
{
    volatile double x = 0;
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        for (int i = 0; i < 100000; i++)
            x += i;
}

/* Gives memory that the program fills with zeros. */
static void UNUSED *zeros(size_t bytes)
{
    void *memory = calloc(bytes, 1);
    if (memory == NULL)
        abort();
    return memory;
}

static void check_world(void)
{
    int one = 1, sum = 0, in = -1, to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, to, 32001, &in, 1, MPI_INT, from, 32001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum == size && in == from)
        put_line("usable");
}

static int UNUSED run_cases(int argc, char **argv, const named_case *cases, int level)
{
    const char *name = argv[argc - 1];
    recording = argc > 2 && strcmp(argv[1], "--record") == 0;
    for (; cases->name; cases++) {
        if (argc > 1 && strcmp(name, "--list") == 0)
            puts(cases->name);
        else if (argc > 1 && strcmp(name, cases->name) == 0)
            break;
    }
    if (cases->name == NULL)
        return argc > 1 && strcmp(name, "--list") == 0 ? 0 : 64;
    if (level < 0)
        return cases->run(), 0; /* the case calls MPI_Init itself */
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Errhandler handler;
    if (recording) {
        MPI_Comm_create_errhandler(record, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        MPI_Errhandler_free(&handler);
    }
    cases->run();
    if (recording)
        check_world();
    MPI_Finalize();
    return 0;
}

/* The main function: the thread level to ask for (-1: the cases call MPI_Init themselves), then the cases. */
#define CASES(level, ...)                                                                                              \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        static const named_case cases[] = {__VA_ARGS__, {NULL, NULL}};                                                 \
        return run_cases(argc, argv, cases, level);                                                                    \
    }

#endif
