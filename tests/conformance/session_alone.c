/* Sessions without the world model, before it, beside it and after it: MPI-5 sections 11.2 and 11.3. */
#include "limosa_test.h"
#include <pthread.h>

static void use_a_session(const char *tag)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, sum = -1, largest = -1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    lt_rank = rank;
    lt_size = size;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_INT(sum, size * (size - 1) / 2);
    MPI_Request request;
    OK(MPI_Iallreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(largest, size - 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
}

static void *in_a_thread(void *tag)
{
    for (int i = 0; i < 10; i++)
        use_a_session(tag);
    return NULL;
}

int main(void)
{
    int flag = -1, provided;
    MPI_Session outer;
    pthread_t threads[2];
    lt_current = "sessions alone";
    use_a_session("first");
    use_a_session("second");
    OK(MPI_Initialized(&flag));
    CHECK_INT(flag, 0);
    lt_current = "sessions while MPI_Init runs";
    pthread_create(&threads[0], NULL, in_a_thread, "thread 0");
    pthread_create(&threads[1], NULL, in_a_thread, "thread 1");
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    for (int i = 0; i < 100; i++)
        OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &outer));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    lt_current = "sessions after MPI_Finalize";
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK_INT(flag, 1);
    use_a_session("after");
    OK(MPI_Session_finalize(&outer));
    use_a_session("last");
    if (lt_rank == 0 && lt_failures == 0)
        puts("PASS session_alone");
    return lt_failures != 0;
}
