/* Wrong programs: processes that are started or met later (MPI-5 chapter 11), and sessions. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD
#define SELF MPI_COMM_SELF
#define NO_INFO MPI_INFO_NULL

static MPI_Comm made;
static char port[MPI_MAX_PORT_NAME];
static MPI_Session session;
static MPI_Group group;

static void spawn_of_no_program(void)
{
    MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, NO_INFO, 0, WORLD, &made, MPI_ERRCODES_IGNORE);
}

static void spawn_of_a_negative_number(void)
{
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, -2, NO_INFO, 0, WORLD, &made, MPI_ERRCODES_IGNORE);
}

static void spawn_root_beyond_the_end(void)
{
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, NO_INFO, 5, WORLD, &made, MPI_ERRCODES_IGNORE);
}

static void spawn_of_a_program_without_mpi(void)
{
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, NO_INFO, 0, WORLD, &made, MPI_ERRCODES_IGNORE);
}

static void accept_that_nobody_connects_to(void)
{
    MPI_Open_port(NO_INFO, port);
    MPI_Comm_accept(port, NO_INFO, 0, WORLD, &made);
}

static void connect_that_nobody_accepts(void)
{
    if (rank == 0)
        MPI_Open_port(NO_INFO, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, WORLD);
    if (rank == 1)
        MPI_Comm_connect(port, NO_INFO, 0, SELF, &made);
    MPI_Barrier(WORLD);
}

static void connect_to_no_port(void)
{
    MPI_Comm_connect("the house next door", NO_INFO, 0, SELF, &made);
}

static void connect_to_a_closed_port(void)
{
    MPI_Open_port(NO_INFO, port);
    MPI_Close_port(port);
    MPI_Comm_connect(port, NO_INFO, 0, SELF, &made);
}

static void accept_at_the_port_of_another_rank(void)
{
    if (rank == 0)
        MPI_Open_port(NO_INFO, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, WORLD);
    if (rank == 1)
        MPI_Comm_accept(port, NO_INFO, 0, SELF, &made);
    MPI_Barrier(WORLD);
}

static void port_closed_twice(void)
{
    MPI_Open_port(NO_INFO, port);
    MPI_Close_port(port);
    MPI_Close_port(port);
}

static void name_that_nobody_published(void)
{
    MPI_Lookup_name("nothing of this name", NO_INFO, port);
}

static void join_of_no_socket(void)
{
    MPI_Comm_join(-1, &made);
}

static void join_of_a_file(void)
{
    MPI_Comm_join(STDERR_FILENO, &made);
}

static void disconnect_of_null(void)
{
    made = MPI_COMM_NULL;
    MPI_Comm_disconnect(&made);
}

static void session_null(void)
{
    MPI_Group_from_session_pset(MPI_SESSION_NULL, "mpi://WORLD", &group);
}

static void set_beyond_the_end(void)
{
    int length = 10;
    char name[10];
    MPI_Session_init(NO_INFO, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_get_nth_pset(session, NO_INFO, 4711, &length, name);
}

static void group_null(void)
{
    MPI_Comm_create_from_group(MPI_GROUP_NULL, "here", NO_INFO, MPI_ERRORS_ARE_FATAL, &made);
}

static void tag_too_long(void)
{
    char tag[5000];
    memset(tag, 'a', sizeof tag - 1);
    tag[sizeof tag - 1] = 0;
    MPI_Session_init(NO_INFO, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, NO_INFO, MPI_ERRORS_ARE_FATAL, &made);
}

static void one_rank_does_not_join_the_session(void)
{
    MPI_Session_init(NO_INFO, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    if (rank == 0)
        MPI_Comm_create_from_group(group, "here", NO_INFO, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

static void overlapping_groups_of_a_session(void)
{
    MPI_Session_init(NO_INFO, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Intercomm_create_from_groups(group, 0, group, 1, "here", NO_INFO, MPI_ERRORS_ARE_FATAL, &made);
}

CASES(MPI_THREAD_SINGLE, CASE(spawn_of_no_program), CASE(spawn_of_a_negative_number), CASE(spawn_root_beyond_the_end),
      CASE(spawn_of_a_program_without_mpi), CASE(accept_that_nobody_connects_to), CASE(connect_that_nobody_accepts),
      CASE(connect_to_no_port), CASE(connect_to_a_closed_port), CASE(accept_at_the_port_of_another_rank),
      CASE(port_closed_twice), CASE(name_that_nobody_published), CASE(join_of_no_socket), CASE(join_of_a_file),
      CASE(disconnect_of_null), CASE(session_null), CASE(set_beyond_the_end), CASE(group_null), CASE(tag_too_long),
      CASE(one_rank_does_not_join_the_session), CASE(overlapping_groups_of_a_session))
