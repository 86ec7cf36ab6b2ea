/* Ranks that exchange messages all the time: in each round each sends to all others, a few bytes or many, and checks
 * that what comes is the message of this round, so that none is lost or doubled. It ends in the round in which rank 0
 * sees the file that the argument names. Each says its process after some rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 16, LONG = 20000 };

static int rank, size;

/* Words of a message: round, sender, whether this is the last round, and filling. */
static int out[LONG], in[MOST][LONG];

static void check(int condition, int round, const char *what)
{
    if (!condition) {
        fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

static int exchange(int round, int last)
{
    int length = round % 16 == 0 ? LONG : 16;
    MPI_Request requests[2 * MOST];
    int started = 0;
    out[0] = round;
    out[1] = rank;
    out[2] = last;
    out[length - 1] = round ^ rank;
    for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
            MPI_Irecv(in[peer], LONG, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[started++]);
            MPI_Isend(out, length, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[started++]);
        }
    }
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++) {
        const int *message = in[peer];
        if (peer != rank) {
            check(message[0] == round && message[1] == peer, round, "a message is lost or came twice");
            check(message[length - 1] == (round ^ peer), round, "a message has wrong data");
        }
    }
    return rank == 0 ? last : in[0][2];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(argc == 2 && size <= MOST, 0, "needs the name of a file and at most 16 ranks");
    int round = 0;
    for (int ended = 0; !ended; round++) {
        ended = exchange(round, rank == 0 && access(argv[1], F_OK) == 0);
        if (round == 20) {
            printf("rank %d %d\n", rank, (int)getpid());
            fflush(stdout);
        }
        usleep(1000);
    }
    int least;
    MPI_Allreduce(&round, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    check(least == round, round, "ranks have done different numbers of rounds");
    if (rank == 0) {
        printf("all messages came\n");
    }
    MPI_Finalize();
    return 0;
}
