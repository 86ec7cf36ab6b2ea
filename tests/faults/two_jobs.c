/* Two jobs that meet under the name of a service, the second argument.
 *
 *   serve NAME ROUNDS   accepts so often, and works together with the connected job
 *   call NAME ROUNDS    connects so often
 *   serve-one-that-dies NAME, die NAME   the caller's processes are killed while the server waits for them
 *   serve-and-wait NAME, call-and-wait NAME   each waits for a message of its partner
 *   serve-and-compute NAME   keeps the caller waiting, and sends then
 *   serve-and-leave NAME, send-in-vain NAME   the caller frees a send that the server, which ends, does not receive
 *   call-again NAME   connects once more, which the server does not expect
 */
#include "dynamic.h"
#include <signal.h>
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME];

static void publish(const char *name)
{
    if (lt_rank != 0)
        return;
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
}

static void unpublish(const char *name)
{
    if (lt_rank != 0)
        return;
    OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
}

/* Waits until the name is published. */
static void look_up(const char *name)
{
    if (lt_rank != 0)
        return;
    while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
        usleep(5000);
}

static MPI_Comm accept_one(void)
{
    MPI_Comm other = MPI_COMM_NULL;
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    return other;
}

static MPI_Comm connect_to_it(void)
{
    MPI_Comm other = MPI_COMM_NULL;
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    return other;
}

/* Groups name the same processes for both sides, and both groups can make communicators of parts of them. */
static void make_parts(MPI_Comm other, int high)
{
    MPI_Comm all, part, again;
    MPI_Group whole, remote, chosen;
    int size, rank, same, ends[2] = {0, 0};
    OK(MPI_Intercomm_merge(other, high, &all));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_group(all, &whole));
    OK(MPI_Comm_remote_group(other, &remote));
    OK(MPI_Group_intersection(whole, remote, &chosen));
    OK(MPI_Group_compare(chosen, remote, &same));
    CHECK_INT(same, MPI_IDENT);
    OK(MPI_Group_free(&chosen));
    ends[1] = size - 1;
    OK(MPI_Group_incl(whole, 2, ends, &chosen));
    if (rank == 0 || rank == size - 1) {
        OK(MPI_Comm_create_group(all, chosen, 3, &part));
        int sum = 0;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part));
        CHECK_INT(sum, size - 1);
        OK(MPI_Comm_disconnect(&part));
    }
    /* An intercommunicator between odd and even ranks, of which each has processes of both jobs. */
    MPI_Comm half;
    OK(MPI_Comm_split(all, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, all, 1 - rank % 2, 5, &again));
    talk(again);
    OK(MPI_Comm_disconnect(&again));
    OK(MPI_Comm_disconnect(&half));
    OK(MPI_Group_free(&chosen));
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&whole));
    OK(MPI_Comm_disconnect(&all));
}

static void meet(MPI_Comm other, int high)
{
    talk(other);
    merge(other, high);
    make_parts(other, high);
    MPI_Comm copy;
    OK(MPI_Comm_dup(other, &copy));
    talk(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Barrier(other));
    OK(MPI_Comm_disconnect(&other));
}

/* The other group dies: what waits for it ends. */
static void survive(void)
{
    int value = 0;
    MPI_Comm other = accept_one();
    OK(MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN));
    OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_PROC_ABORTED, MPI_Recv(&value, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE));
    CHECK(MPI_Barrier(other) != MPI_SUCCESS);
    CHECK(MPI_Send(&value, 1, MPI_INT, 0, 1, other) != MPI_SUCCESS);
    MPI_Comm_disconnect(&other);
}

static void die(void)
{
    MPI_Comm other = connect_to_it();
    int size;
    OK(MPI_Comm_remote_size(other, &size));
    if (lt_rank == 0)
        for (int to = 0; to < size; to++)
            OK(MPI_Ssend(&lt_rank, 1, MPI_INT, to, 0, other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    raise(SIGKILL);
}

/* Rank 0 waits for a message of the other group, and the others of this one wait for rank 0. */
static void wait_for(MPI_Comm other, int tag)
{
    int value = 0;
    if (lt_rank == 0)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, tag, other, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Longer than any hang takes to be reported. */
static void compute_and_send(MPI_Comm other)
{
    double until = MPI_Wtime() + 5;
    while (MPI_Wtime() < until)
        ;
    if (lt_rank == 0)
        OK(MPI_Send(&lt_rank, 1, MPI_INT, 0, 4, other));
    OK(MPI_Comm_disconnect(&other));
}

/* A message that is too large to be stored for a receiver that has gone: its end is of no interest, and no rank waits.
 */
static void send_in_vain(MPI_Comm other)
{
    enum { LENGTH = 1 << 20 };
    static int data[LENGTH];
    MPI_Request request;
    if (lt_rank == 0) {
        OK(MPI_Isend(data, LENGTH, MPI_INT, 0, 9, other, &request));
        OK(MPI_Request_free(&request));
        OK(MPI_Send(data, 0, MPI_INT, 0, 8, other));
    }
}

int main(int argc, char **argv)
{
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || argc < 3)
        return 98;
    MPI_Comm_rank(MPI_COMM_WORLD, &lt_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &lt_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const char *role = lt_current = argv[1], *name = argv[2];
    int rounds = argc > 3 ? atoi(argv[3]) : 1;
    if (strncmp(role, "serve", 5) == 0) {
        publish(name);
        if (strcmp(role, "serve-one-that-dies") == 0)
            survive();
        if (strcmp(role, "serve-and-wait") == 0)
            wait_for(accept_one(), 3);
        else if (strcmp(role, "serve-and-compute") == 0)
            compute_and_send(accept_one());
        else if (strcmp(role, "serve-and-leave") == 0) {
            MPI_Comm other = accept_one();
            if (lt_rank == 0)
                OK(MPI_Recv(NULL, 0, MPI_INT, 0, 8, other, MPI_STATUS_IGNORE));
        } else
            for (int i = 0; i < rounds; i++)
                meet(accept_one(), 0);
        unpublish(name);
    } else {
        look_up(name);
        if (strcmp(role, "die") == 0)
            die();
        if (strcmp(role, "call-and-wait") == 0) {
            MPI_Comm other = connect_to_it();
            wait_for(other, 4);
            OK(MPI_Comm_disconnect(&other));
        } else if (strcmp(role, "send-in-vain") == 0) {
            send_in_vain(connect_to_it());
        } else if (strcmp(role, "call-again") == 0) {
            connect_to_it();
            connect_to_it();
        } else
            for (int i = 0; i < rounds; i++)
                meet(connect_to_it(), 1);
    }
    MPI_Finalize();
    if (lt_failures == 0 && lt_rank == 0)
        printf("met\n");
    return lt_failures != 0;
}
