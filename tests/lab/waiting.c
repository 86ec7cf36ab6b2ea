/* Rank 1 waits for rank 0, then for rank 2, in the way that the first argument names; for test_profile_waiting.py.
 *
 * The late rank hears from those that are about to wait for it, says that it is late, and goes on when it has read a
 * line. Where rank 1 asks again and again, it says so as well when it has asked often. With a second argument nothing
 * is said or read: a late rank is busy for a while.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RANKS 3
#define LATE 0.1
#define BETWEEN 5e-5
#define OFTEN 100

static int rank, alone, turns, lines, asked;
static char in[4], out[4];
static MPI_Comm world, signals;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void be_busy(double seconds)
{
    for (const double begin = now(); now() < begin + seconds;)
        ;
}

static void about_to_wait_for(int late)
{
    MPI_Send(out, 0, MPI_CHAR, late, 0, signals);
}

/* The late rank comes here, for which so many others wait. */
static void be_late(int others)
{
    char line[8];
    for (int i = 0; i < others; i++)
        MPI_Recv(in, 0, MPI_CHAR, MPI_ANY_SOURCE, 0, signals, MPI_STATUS_IGNORE);
    if (alone) {
        be_busy(LATE);
        return;
    }
    puts("late");
    fflush(stdout);
    while (lines < turns && fgets(line, sizeof line, stdin))
        lines++;
}

/* A rank has asked once more, and has something else to do. */
static void ask(void)
{
    be_busy(BETWEEN);
    if (++asked == OFTEN && rank == 1 && !alone) {
        puts("asks");
        fflush(stdout);
    }
}

static void send_late(int late, MPI_Comm comm, int to)
{
    if (rank == late) {
        be_late(1);
        MPI_Send(out, 4, MPI_CHAR, to, 5, comm);
    }
}

static void receive_any(int late, MPI_Comm comm, int waiting)
{
    MPI_Request request;
    send_late(late, comm, waiting);
    if (rank == 1) {
        about_to_wait_for(late);
        MPI_Irecv(in, 4, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void any_source(int late)
{
    receive_any(late, world, 1);
}

/* In communicators in which the ranks are others, of which the second may have the handle of the first. */
static void any_source_elsewhere(int late)
{
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm comm;
        MPI_Comm_split(world, 0, turn ? -rank : (rank + 1) % RANKS, &comm);
        int waiting, first = 1;
        MPI_Group all, some;
        MPI_Comm_group(world, &all);
        MPI_Comm_group(comm, &some);
        MPI_Group_translate_ranks(all, 1, &first, some, &waiting);
        MPI_Group_free(&all);
        MPI_Group_free(&some);
        if (turn)
            receive_any(late, comm, waiting);
        else if (rank == 1)
            MPI_Recv(in, 4, MPI_CHAR, MPI_ANY_SOURCE, 5, comm, MPI_STATUS_IGNORE);
        else if (rank == 2 - late)
            MPI_Send(out, 4, MPI_CHAR, waiting, 5, comm);
        MPI_Comm_free(&comm);
    }
}

/* Both others send, one of them late. */
static void two_receives(MPI_Request *requests)
{
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&in[i], 1, MPI_CHAR, MPI_ANY_SOURCE, 5, world, &requests[i]);
}

static void send_first(int late)
{
    if (rank == 2 - late)
        MPI_Send(out, 1, MPI_CHAR, 1, 5, world);
    else if (rank == late)
        MPI_Recv(in, 0, MPI_CHAR, 1, 6, world, MPI_STATUS_IGNORE);
}

static void wait_all(int late)
{
    MPI_Request requests[2];
    send_first(late);
    if (rank == late) {
        be_late(1);
        MPI_Send(out, 1, MPI_CHAR, 1, 5, world);
    } else if (rank == 1) {
        two_receives(requests);
        MPI_Send(out, 0, MPI_CHAR, late, 6, world);
        about_to_wait_for(late);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

/* The first of two messages is received, then the late one, which alone is waited for. */
static void wait_in_turn(int late, int how)
{
    MPI_Request requests[2];
    int index, indices[2], count, flag;
    MPI_Status status;
    send_first(late);
    if (rank == late) {
        be_late(1);
        MPI_Send(out, 1, MPI_CHAR, 1, 5, world);
    }
    if (rank != 1)
        return;
    two_receives(requests);
    for (int received = 0; received < 2; received += count) {
        count = 1;
        if (received == 1) {
            MPI_Send(out, 0, MPI_CHAR, late, 6, world);
            about_to_wait_for(late);
        }
        for (flag = 0; !flag; ask()) {
            if (how == 0)
                MPI_Waitany(2, requests, &index, &status);
            else if (how == 1)
                MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
            else if (how == 2)
                MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
            else
                MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
            flag = how == 2 ? flag : how < 2 || count > 0;
        }
    }
}

static void wait_any(int late)
{
    wait_in_turn(late, 0);
}

static void wait_some(int late)
{
    wait_in_turn(late, 1);
}

static void test_any(int late)
{
    wait_in_turn(late, 2);
}

static void test_some(int late)
{
    wait_in_turn(late, 3);
}

static void test_one(int late)
{
    MPI_Request request;
    send_late(late, world, 1);
    if (rank == 1) {
        about_to_wait_for(late);
        MPI_Irecv(in, 4, MPI_CHAR, late, 5, world, &request);
        for (int flag = 0; !flag; ask())
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

static void test_all(int late)
{
    MPI_Request requests[2];
    send_first(late);
    if (rank == late) {
        be_late(1);
        MPI_Send(out, 1, MPI_CHAR, 1, 5, world);
    } else if (rank == 1) {
        two_receives(requests);
        MPI_Send(out, 0, MPI_CHAR, late, 6, world);
        about_to_wait_for(late);
        for (int flag = 0; !flag; ask())
            MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    }
}

/* A persistent receive that is used again, of which the second message comes from the late rank. */
static void persistent_receive(int late)
{
    MPI_Request request;
    if (rank == 2 - late)
        MPI_Send(out, 4, MPI_CHAR, 1, 5, world);
    if (rank == late) {
        MPI_Recv(in, 0, MPI_CHAR, 1, 6, world, MPI_STATUS_IGNORE);
        be_late(1);
        MPI_Send(out, 4, MPI_CHAR, 1, 5, world);
    }
    if (rank == 1) {
        MPI_Recv_init(in, 4, MPI_CHAR, MPI_ANY_SOURCE, 5, world, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(out, 0, MPI_CHAR, late, 6, world);
        about_to_wait_for(late);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
}

/* Both sides are persistent. */
static void persistent_send(int late)
{
    MPI_Request requests[2];
    if (rank == 1) {
        about_to_wait_for(late);
        MPI_Ssend_init(out, 2, MPI_CHAR, late, 5, world, &requests[0]);
        MPI_Ssend_init(&out[2], 2, MPI_CHAR, late, 7, world, &requests[1]);
        MPI_Startall(2, requests);
    } else if (rank == late) {
        MPI_Recv_init(in, 2, MPI_CHAR, 1, 5, world, &requests[0]);
        MPI_Recv_init(&in[2], 2, MPI_CHAR, 1, 7, world, &requests[1]);
        be_late(1);
        MPI_Startall(2, requests);
    } else {
        return;
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&requests[i]);
}

static void exchange(int late)
{
    if (rank == late) {
        be_late(1);
        MPI_Sendrecv(out, 4, MPI_CHAR, 1, 5, in, 4, MPI_CHAR, 1, 6, world, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        about_to_wait_for(late);
        MPI_Sendrecv(out, 4, MPI_CHAR, late, 6, in, 4, MPI_CHAR, MPI_ANY_SOURCE, 5, world, MPI_STATUS_IGNORE);
    }
}

static void matched(int late)
{
    MPI_Message message;
    send_late(late, world, 1);
    if (rank == 1) {
        about_to_wait_for(late);
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in, 4, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    }
}

static void matched_later(int late)
{
    MPI_Message message;
    MPI_Request request;
    send_late(late, world, 1);
    if (rank == 1) {
        about_to_wait_for(late);
        for (int flag = 0; !flag; ask())
            MPI_Improbe(MPI_ANY_SOURCE, 5, world, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(in, 4, MPI_CHAR, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* What comes after a receive that was cancelled is not its. */
static void cancelled(int late)
{
    MPI_Request request;
    send_late(late, world, 1);
    if (rank == 1) {
        MPI_Irecv(in, 4, MPI_CHAR, late, 8, world, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        about_to_wait_for(late);
        MPI_Irecv(in, 4, MPI_CHAR, late, 5, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* The late rank comes to a collective operation after both others. */
static void come_in_turn(int late)
{
    if (rank == late)
        be_late(RANKS - 1);
    else
        about_to_wait_for(late);
}

static void collective(int late)
{
    MPI_Request request;
    come_in_turn(late);
    MPI_Ibarrier(world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collective_asked(int late)
{
    MPI_Request request;
    double value = 1, sum;
    come_in_turn(late);
    MPI_Iallreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, world, &request);
    for (int flag = 0; !flag; ask())
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void collective_persistent(int late)
{
    MPI_Request request;
    MPI_Barrier_init(world, MPI_INFO_NULL, &request);
    for (int turn = 0; turn < 2; turn++) {
        if (turn)
            come_in_turn(late);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static const struct {
    const char *name;
    void (*wait)(int late);
} WAYS[] = {
    {"any_source", any_source},
    {"any_source_elsewhere", any_source_elsewhere},
    {"wait_all", wait_all},
    {"wait_any", wait_any},
    {"wait_some", wait_some},
    {"test_one", test_one},
    {"test_all", test_all},
    {"test_any", test_any},
    {"test_some", test_some},
    {"persistent_receive", persistent_receive},
    {"persistent_send", persistent_send},
    {"exchange", exchange},
    {"matched", matched},
    {"matched_later", matched_later},
    {"cancelled", cancelled},
    {"collective", collective},
    {"collective_asked", collective_asked},
    {"collective_persistent", collective_persistent},
};

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "all";
    alone = argc > 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_dup(MPI_COMM_WORLD, &signals);
    for (unsigned i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        for (int late = 0; late < RANKS && (!strcmp(way, "all") || !strcmp(way, WAYS[i].name)); late += 2) {
            MPI_Barrier(world);
            turns++;
            asked = 0;
            WAYS[i].wait(late);
        }
    }
    MPI_Comm_free(&signals);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
