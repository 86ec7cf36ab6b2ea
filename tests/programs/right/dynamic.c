/* Correct programs: groups that meet later (MPI-5 chapter 11), and sessions. */
#include "cases.h"

#include <sys/socket.h>
#include <sys/un.h>

#define WORLD MPI_COMM_WORLD
#define SELF MPI_COMM_SELF
#define NO_INFO MPI_INFO_NULL

static MPI_Comm made;
static char port[MPI_MAX_PORT_NAME];

/* Rank 0 has met rank 1. */
static void talk(void)
{
    int in = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, made, ANY);
    EXPECT(in, 1 - rank);
    MPI_Comm_disconnect(&made);
}

static void late_connection(void)
{
    if (rank == 0)
        MPI_Open_port(NO_INFO, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, WORLD);
    if (rank == 0) {
        MPI_Comm_accept(port, NO_INFO, 0, SELF, &made);
        talk();
        MPI_Close_port(port);
    } else if (rank == 1) {
        compute(2);
        MPI_Comm_connect(port, NO_INFO, 0, SELF, &made);
        talk();
    }
    MPI_Barrier(WORLD);
}

static void published_name(void)
{
    if (rank == 0) {
        MPI_Open_port(NO_INFO, port);
        MPI_Publish_name("limosa-programs", NO_INFO, port);
    }
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Comm_accept(port, NO_INFO, 0, SELF, &made);
        talk();
        MPI_Unpublish_name("limosa-programs", NO_INFO, port);
        MPI_Close_port(port);
    } else if (rank == 1) {
        MPI_Lookup_name("limosa-programs", NO_INFO, port);
        MPI_Comm_connect(port, NO_INFO, 0, SELF, &made);
        talk();
    }
    MPI_Barrier(WORLD);
}

static void socket_of_the_program(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int job = (int)getpgrp(), one = socket(AF_UNIX, SOCK_STREAM, 0), end = one;
    MPI_Bcast(&job, 1, MPI_INT, 0, WORLD);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "limosa-programs-%d", job);
    if (rank == 0) {
        EXPECT(bind(one, (struct sockaddr *)&address, sizeof address), 0);
        EXPECT(listen(one, 1), 0);
    }
    MPI_Barrier(WORLD);
    if (rank == 0)
        end = accept(one, NULL, NULL);
    else
        EXPECT(connect(one, (struct sockaddr *)&address, sizeof address), 0);
    MPI_Comm_join(end, &made);
    talk();
    close(end);
    if (rank == 0)
        close(one);
}

static void sessions_of_some_ranks(void)
{
    MPI_Session session;
    MPI_Group all, some;
    int sum = 0, two[2] = {0, 1};
    MPI_Session_init(NO_INFO, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_incl(all, 2, two, &some);
    if (rank < 2) {
        MPI_Comm_create_from_group(some, "some", NO_INFO, MPI_ERRORS_ARE_FATAL, &made);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made);
        EXPECT(sum, 1);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Session_finalize(&session);
}

CASES(MPI_THREAD_SINGLE, CASE(late_connection), CASE(published_name), CASE(socket_of_the_program),
      CASE(sessions_of_some_ranks))
