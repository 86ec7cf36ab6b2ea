/* One mistake under the default error handler.  usage: fatal what
 *
 * Rank 1 makes the mistake while the others wait for it in a barrier; so the job ends only if the error ends it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mistakes that have to do with sessions. */
static int misuse_a_session(const char *what)
{
    MPI_Session session, stale;
    MPI_Group group;
    MPI_Comm comm;
    if (strcmp(what, "session-handler") == 0)
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &session);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    stale = session;
    if (strcmp(what, "session-world") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "session-world-after") == 0) {
        MPI_Init(NULL, NULL);
        MPI_Finalize();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(what, "session-finalize") == 0)
        MPI_Finalize();
    if (strcmp(what, "session-set") == 0)
        MPI_Group_from_session_pset(session, "foo", &group);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "misuse", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Session_finalize(&session);
    if (strcmp(what, "session-stale") == 0)
        MPI_Group_from_session_pset(stale, "mpi://WORLD", &group);
    if (strcmp(what, "session-over") == 0)
        MPI_Barrier(comm);
    puts("went on");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int rank, size, value[4] = {0}, result;
    MPI_Comm comm;
    MPI_Datatype type;
    if (strcmp(what, "before-init") == 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strncmp(what, "session-", 8) == 0)
        return misuse_a_session(what);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "after-finalize") == 0) {
        MPI_Finalize();
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return 0;
    }
    if (strcmp(what, "init-twice") == 0)
        MPI_Init(&argc, &argv);
    if (rank != 1) {
        if (strcmp(what, "truncation") == 0 && rank == 0)
            MPI_Send(value, 4, MPI_INT, 1, 5, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "rank") == 0) {
        MPI_Send(value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "count") == 0) {
        MPI_Recv(value, -17, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(what, "tag") == 0) {
        MPI_Send(value, 1, MPI_INT, 0, -99, MPI_COMM_WORLD);
    } else if (strcmp(what, "truncation") == 0) {
        MPI_Recv(value, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(what, "root") == 0) {
        MPI_Bcast(value, 1, MPI_INT, 1234, MPI_COMM_WORLD);
    } else if (strcmp(what, "null-comm") == 0) {
        MPI_Comm_size(MPI_COMM_NULL, &result);
    } else if (strcmp(what, "freed-comm") == 0) {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm stale = comm;
        MPI_Comm_free(&comm);
        MPI_Barrier(stale);
    } else if (strcmp(what, "uncommitted") == 0) {
        MPI_Type_contiguous(2, MPI_INT, &type);
        MPI_Send(value, 1, type, 0, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "buffer") == 0) {
        MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "errors-abort") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
        MPI_Send(value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "world-handler") == 0) {
        /* A call without a communicator, in a program that was written before MPI-4. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (MPI_Type_contiguous(-1, MPI_INT, &type) == MPI_SUCCESS)
            exit(98);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "self-handler") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
        if (MPI_Type_contiguous(-1, MPI_INT, &type) == MPI_SUCCESS)
            exit(98);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 42);
    } else if (strcmp(what, "abort-self") == 0) {
        MPI_Abort(MPI_COMM_SELF, 43);
    } else {
        fprintf(stderr, "fatal: no such mistake: %s\n", what);
        exit(99);
    }
    /* Not reached if the mistake was noticed. */
    printf("rank %d went on after %s\n", rank, what);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
