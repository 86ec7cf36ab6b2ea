/* Numbered messages of many lengths go both ways between the first and the last rank, until the file that is named
 * exists. The last number and the number of bytes must be what was sent: nothing is lost, doubled or changed. With
 * `check` behind the name, errors are returned; the class and text of the first one are printed, and the rank stays. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 300000, ROUND = 20 };

static int rank, size, other;
static unsigned char *out, *in;

static void fail(const char *what, long number)
{
    fprintf(stderr, "rank %d: message %ld: %s\n", rank, number, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int length_of(long number)
{
    return (int)(number % 7 == 0 ? number * 7919 % LONGEST : number * 31 % 2000) + (int)sizeof number;
}

static void fill(unsigned char *bytes, long number)
{
    memset(bytes, (int)(number % 251), (size_t)length_of(number));
    memcpy(bytes, &number, sizeof number);
}

/* Some messages in both directions; an error code. */
static int one_round(long first)
{
    MPI_Request sends[ROUND];
    static unsigned char *copies;
    copies = copies ? copies : malloc((size_t)ROUND * (LONGEST + 8));
    for (int i = 0; i < ROUND; i++) {
        unsigned char *bytes = copies + (size_t)i * (LONGEST + 8);
        fill(bytes, first + i);
        int error = MPI_Isend(bytes, length_of(first + i), MPI_BYTE, other, 1, MPI_COMM_WORLD, &sends[i]);
        if (error != MPI_SUCCESS) {
            return error;
        }
    }
    for (int i = 0; i < ROUND; i++) {
        MPI_Status status;
        int error = MPI_Recv(in, LONGEST + 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &status);
        if (error != MPI_SUCCESS) {
            return error;
        }
        int length;
        MPI_Get_count(&status, MPI_BYTE, &length);
        fill(out, first + i);
        if (length != length_of(first + i) || memcmp(in, out, (size_t)length) != 0) {
            fail("another message came", first + i);
        }
    }
    return MPI_Waitall(ROUND, sends, MPI_STATUSES_IGNORE);
}

static void say_error(int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    MPI_Error_class(error, &class);
    MPI_Error_string(error, text, &length);
    printf("rank %d: class %s: %s\n", rank, class == MPI_ERR_OTHER ? "other" : "unexpected", text);
    for (;;) {
        pause();
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    out = malloc(LONGEST + 8);
    in = malloc(LONGEST + 8);
    other = size - 1 - rank;
    if (argc > 2) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    long number = 1;
    for (int stop = 0; !stop; number += ROUND) {
        int error = one_round(number);
        if (error == MPI_SUCCESS) {
            stop = rank == 0 && access(argv[1], F_OK) == 0;
            error = MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (error != MPI_SUCCESS) {
            say_error(error);
        }
        if (rank == 0) {
            printf("%ld\n", number);
        }
    }
    if (rank == 0) {
        printf("all came\n");
    }
    MPI_Finalize();
    return 0;
}
