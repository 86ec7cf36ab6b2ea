/* Sessions beside the world model: process sets, groups, communicators, error handlers, buffers: MPI-5 sections 11.3
 * and 7.4.2. */
#include "limosa_test.h"
#include <pthread.h>

static MPI_Session begin(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK_INT(session != MPI_SESSION_NULL, 1);
    return session;
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, set, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static void sum_over(MPI_Comm comm)
{
    int rank, size, sum;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_INT(sum, size * (size - 1) / 2);
}

static void process_sets_have_names_and_sizes(void)
{
    MPI_Session session = begin();
    int n, seen = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    for (int i = 0; i < n; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], value[32];
        int needed = 0, length = sizeof name, flag, room = sizeof value;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &needed, NULL));
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK_INT(needed, (int)strlen(name) + 1);
        CHECK_INT(length, needed);
        char shortened[4] = "xyz";
        length = 3;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, shortened));
        CHECK_INT(strncmp(shortened, name, 2) == 0 && shortened[2] == 0, 1);
        MPI_Info info;
        OK(MPI_Session_get_pset_info(session, name, &info));
        OK(MPI_Info_get_string(info, "mpi_size", &room, value, &flag));
        CHECK_INT(flag, 1);
        OK(MPI_Info_free(&info));
        if (strcmp(name, "mpi://WORLD") == 0) {
            CHECK_INT(atoi(value), lt_size);
            seen |= 1;
        }
        if (strcmp(name, "mpi://SELF") == 0) {
            CHECK_INT(atoi(value), 1);
            seen |= 2;
        }
    }
    CHECK_INT(seen, 3);
    char name[8];
    int length = sizeof name;
    CHECK_INT(lt_class(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name)), MPI_ERR_ARG);
    OK(MPI_Session_finalize(&session));
    CHECK_INT(session == MPI_SESSION_NULL, 1);
}

static void a_session_says_what_it_offers(void)
{
    MPI_Info wanted, used;
    MPI_Session session;
    char value[64];
    int flag, room = sizeof value;
    OK(MPI_Info_create(&wanted));
    OK(MPI_Info_set(wanted, "thread_level", "MPI_THREAD_SINGLE"));
    OK(MPI_Session_init(wanted, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_info(session, &used));
    OK(MPI_Info_get_string(used, "thread_level", &room, value, &flag));
    CHECK_INT(flag && strcmp(value, "MPI_THREAD_MULTIPLE") == 0, 1);
    OK(MPI_Info_free(&used));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Info_set(wanted, "thread_level", "MPI_THREAD_SOME"));
    CHECK_INT(lt_class(MPI_Session_init(wanted, MPI_ERRORS_RETURN, &session)), MPI_ERR_INFO_VALUE);
    CHECK_INT(session == MPI_SESSION_NULL, 1);
    OK(MPI_Info_free(&wanted));
}

static void sessions_communicate_beside_each_other(void)
{
    MPI_Session first = begin(), second = begin();
    MPI_Comm all = comm_of(first, "mpi://WORLD", "all"), again = comm_of(second, "mpi://WORLD", "all");
    MPI_Comm own = comm_of(second, "mpi://SELF", "own"), half;
    int result, size;
    OK(MPI_Comm_compare(all, again, &result));
    CHECK_INT(result, MPI_CONGRUENT);
    OK(MPI_Comm_size(own, &size));
    CHECK_INT(size, 1);
    /* The same tag and number on both: nothing may go astray. */
    int right = (lt_rank + 1) % lt_size, left = (lt_rank + lt_size - 1) % lt_size, out[2] = {lt_rank, 1000 + lt_rank},
        in[2];
    MPI_Request requests[4];
    OK(MPI_Irecv(&in[1], 1, MPI_INT, left, 7, again, &requests[0]));
    OK(MPI_Irecv(&in[0], 1, MPI_INT, left, 7, all, &requests[1]));
    OK(MPI_Isend(&out[0], 1, MPI_INT, right, 7, all, &requests[2]));
    OK(MPI_Isend(&out[1], 1, MPI_INT, right, 7, again, &requests[3]));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(in[0], left);
    CHECK_INT(in[1], 1000 + left);
    sum_over(all);
    sum_over(again);
    sum_over(MPI_COMM_WORLD);
    OK(MPI_Comm_split(again, lt_rank % 2, 0, &half));
    sum_over(half);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&all));
    OK(MPI_Session_finalize(&first));
    sum_over(again);
    OK(MPI_Comm_free(&again));
    OK(MPI_Comm_free(&own));
    OK(MPI_Session_finalize(&second));
}

static void a_tag_can_be_used_again(void)
{
    MPI_Session session = begin();
    for (int i = 0; i < 20; i++) {
        MPI_Comm comm = comm_of(session, "mpi://WORLD", i % 2 ? "odd" : "even");
        sum_over(comm);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Session_finalize(&session));
}

static int heard_class, heard_session;

static void hear_session(MPI_Session *session, int *code, ...)
{
    heard_session = *session != MPI_SESSION_NULL;
    heard_class = lt_class(*code);
}

static void hear_comm(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    heard_class = lt_class(*code);
}

static void errors_go_to_the_handler_of_the_session(void)
{
    MPI_Session session = begin();
    MPI_Group group;
    MPI_Comm comm;
    MPI_Errhandler handler, got;
    CHECK_INT(lt_class(MPI_Group_from_session_pset(session, "mpi://NONE", &group)), MPI_ERR_ARG);
    CHECK_INT(group == MPI_GROUP_NULL, 1);
    OK(MPI_Session_create_errhandler(hear_session, &handler));
    OK(MPI_Session_set_errhandler(session, handler));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK_INT(got == handler, 1);
    OK(MPI_Errhandler_free(&got));
    heard_class = heard_session = 0;
    CHECK_INT(lt_class(MPI_Group_from_session_pset(session, "mpi://NONE", &group)), MPI_ERR_ARG);
    CHECK_INT(heard_class, MPI_ERR_ARG);
    CHECK_INT(heard_session, 1);
    OK(MPI_Session_call_errhandler(session, MPI_ERR_TAG));
    CHECK_INT(heard_class, MPI_ERR_TAG);
    CHECK_INT(lt_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)), MPI_ERR_ERRHANDLER);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    /* The handler given to the constructor of a communicator hears of its errors. */
    OK(MPI_Comm_create_errhandler(hear_comm, &handler));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    int others[1] = {(lt_rank + 1) % lt_size};
    if (lt_size > 1) {
        MPI_Group without_me;
        OK(MPI_Group_incl(group, 1, others, &without_me));
        heard_class = 0;
        CHECK_INT(lt_class(MPI_Comm_create_from_group(without_me, "x", MPI_INFO_NULL, handler, &comm)), MPI_ERR_GROUP);
        CHECK_INT(heard_class, MPI_ERR_GROUP);
        CHECK_INT(comm == MPI_COMM_NULL, 1);
        OK(MPI_Group_free(&without_me));
    }
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, handler, &comm));
    CHECK_INT(comm == MPI_COMM_NULL, 1);
    OK(MPI_Group_free(&group));
    OK(MPI_Errhandler_free(&handler));
    MPI_Session stale = session;
    OK(MPI_Session_finalize(&session));
    CHECK_INT(lt_class(MPI_Session_finalize(&stale)), MPI_ERR_SESSION);
}

static void a_session_has_a_buffer_of_its_own(void)
{
    MPI_Session session = begin(), other = begin();
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "bsend"), foreign = comm_of(other, "mpi://WORLD", "bsend"), child;
    int size = 2 * (100 + MPI_BSEND_OVERHEAD), got_size;
    char *buffer = lt_alloc((size_t)size), out[100] = "hello", in[100];
    void *got;
    int right = (lt_rank + 1) % lt_size, left = (lt_rank + lt_size - 1) % lt_size;
    OK(MPI_Comm_dup(comm, &child));
    CHECK_INT(lt_class(MPI_Bsend(out, 100, MPI_BYTE, right, 0, comm)), MPI_ERR_BUFFER);
    OK(MPI_Session_attach_buffer(session, buffer, size));
    CHECK_INT(lt_class(MPI_Session_attach_buffer(session, buffer, size)), MPI_ERR_BUFFER);
    OK(MPI_Bsend(out, 100, MPI_BYTE, right, 0, comm));
    OK(MPI_Bsend(out, 100, MPI_BYTE, right, 0, child));
    CHECK_INT(lt_class(MPI_Bsend(out, 100, MPI_BYTE, right, 0, foreign)), MPI_ERR_BUFFER);
    OK(MPI_Recv(in, 100, MPI_BYTE, left, 0, comm, MPI_STATUS_IGNORE));
    OK(MPI_Recv(in, 100, MPI_BYTE, left, 0, child, MPI_STATUS_IGNORE));
    CHECK_INT(strcmp(in, "hello"), 0);
    MPI_Request flushed;
    OK(MPI_Session_iflush_buffer(session, &flushed));
    OK(MPI_Wait(&flushed, MPI_STATUS_IGNORE));
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_detach_buffer(session, &got, &got_size));
    CHECK_PTR(got, buffer);
    CHECK_INT(got_size, size);
    free(buffer);
    OK(MPI_Comm_free(&child));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&foreign));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Session_finalize(&other));
}

static void *one_thread(void *argument)
{
    char tag[32];
    snprintf(tag, sizeof tag, "thread %d", *(int *)argument);
    for (int i = 0; i < 10; i++) {
        MPI_Session session = begin();
        MPI_Comm comm = comm_of(session, "mpi://WORLD", tag);
        sum_over(comm);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Session_finalize(&session));
    }
    return NULL;
}

static void threads_have_sessions_at_once(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, one_thread, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

LT_MAIN("session", TEST(process_sets_have_names_and_sizes), TEST(a_session_says_what_it_offers),
        TEST(sessions_communicate_beside_each_other), TEST(a_tag_can_be_used_again),
        TEST(errors_go_to_the_handler_of_the_session), TEST(a_session_has_a_buffer_of_its_own),
        TEST(threads_have_sessions_at_once))
