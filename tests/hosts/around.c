/* A job over several hosts: data go around all ranks, in messages of all lengths and in collectives. With an argument:
 * abort (the last rank does), sleep (each says its process, and sleeps), hang (each receives from the next). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void check(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void send_around(int length)
{
    unsigned char *out = malloc((size_t)length + 1), *in = malloc((size_t)length + 1);
    for (int i = 0; i < length; i++) {
        out[i] = (unsigned char)(i + rank);
    }
    memset(in, 0, (size_t)length);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Status status;
    MPI_Sendrecv(out, length, MPI_BYTE, next, length % 1000, in, length, MPI_BYTE, before, length % 1000,
                 MPI_COMM_WORLD, &status);
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    check(count == length && status.MPI_SOURCE == before, "the wrong message came");
    for (int i = 0; i < length; i++) {
        check(in[i] == (unsigned char)(i + before), "wrong data came");
    }
    free(out);
    free(in);
}

static void collect(void)
{
    for (int length = 1; length <= 100000; length *= 10) {
        int *values = malloc((size_t)length * sizeof *values), *sums = malloc((size_t)length * sizeof *sums);
        for (int i = 0; i < length; i++) {
            values[i] = rank + i;
        }
        MPI_Allreduce(values, sums, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < length; i++) {
            check(sums[i] == size * (size - 1) / 2 + size * i, "a wrong sum");
        }
        MPI_Bcast(values, length, MPI_INT, size - 1, MPI_COMM_WORLD);
        check(values[length - 1] == size - 1 + length - 1, "a wrong broadcast");
        free(values);
        free(sums);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "sleep") == 0) {
        printf("rank %d %d\n", rank, (int)getpid());
        fflush(stdout);
        sleep(1000);
    }
    if (strcmp(what, "abort") == 0) {
        if (rank == size - 1) {
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
        sleep(1000);
    }
    if (strcmp(what, "hang") == 0) {
        int value;
        MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int length = 0; length <= 4000000; length = 3 * length + 1) {
        send_around(length);
    }
    collect();
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    int on_host, is_first, hosts;
    MPI_Comm_rank(host, &on_host);
    is_first = on_host == 0;
    MPI_Reduce(&is_first, &hosts, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks on %d hosts: all data came\n", size, hosts);
    }
    MPI_Comm_free(&host);
    MPI_Finalize();
    return 0;
}
