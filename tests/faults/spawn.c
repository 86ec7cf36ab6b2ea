/* Spawned processes that fail.  usage: spawn what [program]
 *
 * The first processes spawn this program again, with `child-` before what it is to do, or the program that is named.
 */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

/* Says whether this process was spawned, and its number. */
static void say_who(int is_spawned)
{
    printf("pid %d %d\n", is_spawned, (int)getpid());
    fflush(stdout);
}

/* The error of a spawn, its text, and that the library stays usable. */
static void refused(char *program)
{
    MPI_Comm children;
    char text[MPI_MAX_ERROR_STRING];
    int length, class, code, sum, one = 1;
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == sum - 1)
        printf("%s: %s\n", class == MPI_ERR_SPAWN && children == MPI_COMM_NULL ? "refused" : "wrong", text);
}

static MPI_Comm spawn(char *program, const char *what)
{
    char role[64];
    char *argv[] = {role, NULL};
    MPI_Comm children;
    snprintf(role, sizeof role, "child-%s", what);
    MPI_Comm_spawn(program, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return children;
}

/* Both groups wait for each other. */
static void wait_for(MPI_Comm other, int is_spawned)
{
    int value;
    say_who(is_spawned);
    MPI_Recv(&value, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
}

/* No rank connects. */
static void accept_nobody(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "child-early") == 0)
        return 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (strcmp(what, "child-die") == 0 && rank == 1)
            raise(SIGKILL);
        wait_for(parent, 1);
    } else if (strcmp(what, "refused") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        refused(argv[2]);
    } else if (strcmp(what, "early") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm children = spawn(argv[0], what);
        printf("%s\n", children == MPI_COMM_NULL ? "refused" : "wrong");
    } else if (strcmp(what, "accept") == 0) {
        accept_nobody();
    } else {
        wait_for(spawn(argv[0], what), 0);
    }
    MPI_Finalize();
    return 0;
}
