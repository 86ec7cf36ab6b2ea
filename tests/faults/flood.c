/* Many messages of 4 KB that a rank does not receive yet. With "pair", both ranks have them for each other under
 * way while they meet in a barrier. Otherwise rank 0 has them for rank 1, which receives a message with another tag
 * first and says how many KB of memory the waiting for it took. In the end all messages are received and compared.
 * Arguments: megabytes, and "pair" or nothing. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 4096, MESSAGE = 0, LAST = 1 };

static long peak_kb(void)
{
    char line[256];
    long peak = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (sscanf(line, "VmHWM: %ld kB", &peak) == 1) {
            break;
        }
    }
    fclose(status);
    return peak;
}

static int length_of(int number)
{
    return number % 3 == 0 ? 0 : LENGTH - number % 100;
}

static void fill(unsigned char *message, int number)
{
    for (int i = 0; i < LENGTH; i++) {
        message[i] = (unsigned char)(i + number);
    }
}

static unsigned char *start(int count, int to, MPI_Request *requests)
{
    unsigned char *messages = malloc((size_t)count * LENGTH);
    for (int i = 0; i < count; i++) {
        unsigned char *message = messages + (size_t)i * LENGTH;
        fill(message, i);
        MPI_Isend(message, length_of(i), MPI_BYTE, to, MESSAGE, MPI_COMM_WORLD, &requests[i]);
    }
    return messages;
}

static void receive(int count, int from)
{
    unsigned char message[LENGTH], expected[LENGTH];
    for (int i = 0; i < count; i++) {
        MPI_Status status;
        int length;
        MPI_Recv(message, LENGTH, MPI_BYTE, from, MESSAGE, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        fill(expected, i);
        if (length != length_of(i) || memcmp(message, expected, (size_t)length) != 0) {
            fprintf(stderr, "message %d is wrong\n", i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, count = atoi(argv[1]) * ((1 << 20) / LENGTH);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_pair = argc > 2, partner = 1 - rank;
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    unsigned char *messages = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    long before = peak_kb();
    if (is_pair || rank == 0) {
        messages = start(count, partner, requests);
    }
    if (is_pair) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Send(NULL, 0, MPI_BYTE, partner, LAST, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, partner, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%ld\n", peak_kb() - before);
    }
    if (is_pair || rank == 1) {
        receive(count, partner);
    }
    if (messages != NULL) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    free(messages);
    free(requests);
    if (is_pair && rank == 0) {
        puts("all received");
    }
    MPI_Finalize();
    return 0;
}
