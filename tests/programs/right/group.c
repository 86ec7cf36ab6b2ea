/* Correct programs: groups, communicators, datatypes, sessions, the beginning and the end. Nothing may be reported. */
#include "cases.h"

#include <signal.h>
#include <sys/wait.h>

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];
static MPI_Comm comm;

static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
}

static void init_and_finalize(void)
{
    begin();
    MPI_Finalize();
}

static void work_after_finalize(void)
{
    begin();
    MPI_Finalize();
    if (rank == 1)
        nap(4);
}

static void exit_zero_after_finalize(void)
{
    begin();
    MPI_Finalize();
    _exit(0);
}

static void slow_start(void)
{
    if (getpid() % 2)
        nap(4);
    begin();
    MPI_Finalize();
}

static void late_finalize(void)
{
    begin();
    if (rank == 0)
        nap(5);
    MPI_Finalize();
}

static void many_communicators(void)
{
    begin();
    for (int i = 0; i < 500; i++) {
        MPI_Comm_dup(WORLD, &comm);
        MPI_Allreduce(x, y, 1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
}

static void many_communicators_at_once(void)
{
    static MPI_Comm all[200];
    begin();
    for (int i = 0; i < 200; i++)
        MPI_Comm_split(WORLD, (rank + i) % 2, 0, &all[i]);
    for (int i = 199; i >= 0; i--)
        MPI_Barrier(all[i]);
    for (int i = 0; i < 200; i++)
        MPI_Comm_free(&all[i]);
    MPI_Finalize();
}

static void split_without_some(void)
{
    begin();
    MPI_Comm_split(WORLD, rank ? 0 : MPI_UNDEFINED, 0, &comm);
    if (comm != MPI_COMM_NULL) {
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    } else {
        nap(4);
    }
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static void communicator_freed_with_messages_under_way(void)
{
    MPI_Request request;
    begin();
    MPI_Comm_dup(WORLD, &comm);
    MPI_Irecv(y, 1, MPI_INT, size - 1 - rank, 0, comm, &request);
    MPI_Send(x, 1, MPI_INT, size - 1 - rank, 0, comm);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static void grids(void)
{
    int dims[] = {0, 0}, periods[] = {1, 0}, from, to;
    begin();
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(WORLD, 2, dims, periods, 1, &comm);
    for (int axis = 0; axis < 2; axis++) {
        MPI_Cart_shift(comm, axis, 1, &from, &to);
        MPI_Sendrecv(x, 4, MPI_INT, to, 0, y, 4, MPI_INT, from, 0, comm, ANY);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static void errors_handled(void)
{
    int class;
    begin();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Send(x, 1, MPI_INT, size, 0, WORLD);
    MPI_Error_class(code, &class);
    EXPECT(class, MPI_ERR_RANK);
    code = MPI_Bcast(x, 1, MPI_INT, -1, WORLD);
    MPI_Error_class(code, &class);
    EXPECT(class, MPI_ERR_ROOT);
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static int handled;

static void count_error(MPI_Comm *where, int *code, ...)
{
    (void)where, (void)code;
    handled++;
}

static void errors_handled_by_a_function(void)
{
    MPI_Errhandler handler;
    begin();
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(WORLD, handler);
    MPI_Errhandler_free(&handler);
    MPI_Send(x, -1, MPI_INT, 0, 0, WORLD);
    EXPECT(handled, 1);
    MPI_Finalize();
}

static void truncation_handled(void)
{
    int class;
    begin();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Request request;
    MPI_Isend(x, 8, MPI_INT, rank, 0, WORLD, &request);
    MPI_Error_class(MPI_Recv(y, 4, MPI_INT, rank, 0, WORLD, ANY), &class);
    EXPECT(class, MPI_ERR_TRUNCATE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals = signals + 1;
}

static void signals_handled_while_waiting(void)
{
    begin();
    signal(SIGALRM, count_signal);
    if (rank == 0) {
        nap(3.5);
        MPI_Send(x, 1, MPI_INT, 1, 0, WORLD);
    } else if (rank == 1) {
        alarm(1);
        MPI_Recv(y, 1, MPI_INT, 0, 0, WORLD, ANY);
        EXPECT(signals, 1);
    }
    MPI_Finalize();
}

static void children(void)
{
    begin();
    pid_t child = fork();
    if (child == 0) {
        nap(3);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static void a_session(void)
{
    MPI_Session session;
    MPI_Group group;
    int sum = 0, one = 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "a", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

static void sessions_one_after_the_other(void)
{
    for (int i = 0; i < 5; i++)
        a_session();
    begin();
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static void derived_types(void)
{
    MPI_Datatype column, swapped;
    int lengths[] = {1, 1};
    MPI_Aint displacements[] = {8, 0};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    begin();
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 64; i++)
        x[i] = i;
    MPI_Sendrecv(x, 1, column, rank, 0, y, 8, MPI_INT, rank, 0, WORLD, ANY);
    EXPECT(y[7], 56);
    MPI_Type_free(&column);
    MPI_Type_create_struct(2, lengths, displacements, types, &swapped);
    MPI_Type_commit(&swapped);
    MPI_Sendrecv(x, 2, swapped, rank, 0, y, 2, swapped, rank, 0, WORLD, ANY);
    MPI_Type_free(&swapped);
    MPI_Finalize();
}

static void type_freed_under_way(void)
{
    MPI_Datatype pair;
    MPI_Request request;
    begin();
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Irecv(y, 1, pair, rank, 0, WORLD, &request);
    MPI_Type_free(&pair);
    MPI_Send(x, 2, MPI_INT, rank, 0, WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static void bytes_for_anything(void)
{
    double out = 1.5, in = 0;
    begin();
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, rank, 0, &in, sizeof in, MPI_BYTE, rank, 0, WORLD, ANY);
    EXPECT(in * 2, 3);
    MPI_Sendrecv(&out, sizeof out, MPI_BYTE, rank, 0, &in, 1, MPI_DOUBLE, rank, 0, WORLD, ANY);
    MPI_Finalize();
}

static void packed_messages(void)
{
    char buffer[64];
    int position = 0;
    double d = 2.5;
    begin();
    MPI_Pack(&rank, 1, MPI_INT, buffer, sizeof buffer, &position, WORLD);
    MPI_Pack(&d, 1, MPI_DOUBLE, buffer, sizeof buffer, &position, WORLD);
    MPI_Request request;
    MPI_Isend(buffer, position, MPI_PACKED, rank, 0, WORLD, &request);
    MPI_Recv(x, sizeof x, MPI_PACKED, rank, 0, WORLD, ANY);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static void abort_never_reached(void)
{
    begin();
    if (size < 0)
        MPI_Abort(WORLD, 1);
    MPI_Barrier(WORLD);
    MPI_Finalize();
}

static void one_rank_alone(void)
{
    begin();
    MPI_Allreduce(&size, y, 1, MPI_INT, MPI_SUM, WORLD);
    nap(3);
    MPI_Finalize();
}

CASES(-1, CASE(init_and_finalize), CASE(work_after_finalize), CASE(exit_zero_after_finalize), CASE(slow_start),
      CASE(late_finalize), CASE(many_communicators), CASE(many_communicators_at_once), CASE(split_without_some),
      CASE(communicator_freed_with_messages_under_way), CASE(grids), CASE(errors_handled),
      CASE(errors_handled_by_a_function), CASE(truncation_handled), CASE(signals_handled_while_waiting), CASE(children),
      CASE(a_session), CASE(sessions_one_after_the_other), CASE(derived_types), CASE(type_freed_under_way),
      CASE(bytes_for_anything), CASE(packed_messages), CASE(abort_never_reached), CASE(one_rank_alone))
