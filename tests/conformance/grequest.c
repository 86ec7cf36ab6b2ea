/* Generalized requests: completion by another thread, query/free/cancel and their codes, freeing before the end, mixing
 * with messages in all wait and test forms: MPI-5 section 13.2. */
#include "limosa_test.h"

#include <pthread.h>
#include <unistd.h>

typedef struct {
    int queried, freed, cancelled, cancelled_complete;
    int query_code, free_code, cancel_code;
    MPI_Request request;
} state;

static int query(void *extra, MPI_Status *status)
{
    state *s = extra;
    s->queried++;
    MPI_Status_set_source(status, 3);
    MPI_Status_set_tag(status, 17);
    MPI_Status_set_elements(status, MPI_INT, 5);
    MPI_Status_set_cancelled(status, s->cancelled > 0);
    return s->query_code;
}

static int release(void *extra)
{
    state *s = extra;
    s->freed++;
    return s->free_code;
}

static int cancel(void *extra, int complete)
{
    state *s = extra;
    s->cancelled++;
    s->cancelled_complete = complete;
    return s->cancel_code;
}

static void *complete_later(void *extra)
{
    state *s = extra;
    usleep(20000);
    MPI_Grequest_complete(s->request);
    return NULL;
}

static void check_status(const MPI_Status *status)
{
    int count = 0, cancelled = 1;
    CHECK_INT(status->MPI_SOURCE, 3);
    CHECK_INT(status->MPI_TAG, 17);
    MPI_Get_count(status, MPI_INT, &count);
    CHECK_INT(count, 5);
    MPI_Test_cancelled(status, &cancelled);
    CHECK_INT(cancelled, 0);
}

static void another_thread_completes(void)
{
    state s = {0};
    MPI_Status status;
    pthread_t thread;
    OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
    MPI_Request waited = s.request;
    int flag = 1;
    OK(MPI_Test(&waited, &flag, &status));
    CHECK_INT(flag, 0);
    CHECK_INT(s.queried, 0);
    pthread_create(&thread, NULL, complete_later, &s);
    OK(MPI_Wait(&waited, &status));
    pthread_join(thread, NULL);
    CHECK(waited == MPI_REQUEST_NULL);
    check_status(&status);
    CHECK_INT(s.queried, 1);
    CHECK_INT(s.freed, 1);
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(s.request));
}

static void looks_do_not_free(void)
{
    state s = {0};
    MPI_Status status;
    int flag = 1;
    OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
    OK(MPI_Request_get_status(s.request, &flag, &status));
    CHECK_INT(flag, 0);
    OK(MPI_Grequest_complete(s.request));
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(s.request));
    OK(MPI_Request_get_status(s.request, &flag, &status));
    CHECK_INT(flag, 1);
    check_status(&status);
    CHECK_INT(s.freed, 0);
    OK(MPI_Wait(&s.request, MPI_STATUS_IGNORE));
    CHECK_INT(s.freed, 1);
}

/* MPI_Request_free and MPI_Grequest_complete in both orders: free is called by the last, query by none. */
static void freed_requests(void)
{
    for (int complete_first = 0; complete_first < 2; complete_first++) {
        state s = {0};
        OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
        MPI_Request freed = s.request;
        if (complete_first)
            OK(MPI_Grequest_complete(s.request));
        CHECK_INT(s.freed, 0);
        OK(MPI_Request_free(&freed));
        CHECK(freed == MPI_REQUEST_NULL);
        CHECK_INT(s.freed, complete_first);
        if (!complete_first)
            OK(MPI_Grequest_complete(s.request));
        CHECK_INT(s.freed, 1);
        CHECK_INT(s.queried, 0);
        FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(s.request));
    }
}

static void cancel_is_told_whether_it_is_complete(void)
{
    state s = {0};
    MPI_Status status;
    int cancelled = 0;
    OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
    OK(MPI_Cancel(&s.request));
    CHECK_INT(s.cancelled, 1);
    CHECK_INT(s.cancelled_complete, 0);
    OK(MPI_Grequest_complete(s.request));
    OK(MPI_Cancel(&s.request));
    CHECK_INT(s.cancelled, 2);
    CHECK(s.cancelled_complete);
    OK(MPI_Wait(&s.request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
}

static void codes_of_the_functions_come_back(void)
{
    for (int which = 0; which < 2; which++) {
        state s = {0};
        *(which ? &s.free_code : &s.query_code) = MPI_ERR_OTHER;
        OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
        OK(MPI_Grequest_complete(s.request));
        CHECK_INT(MPI_Wait(&s.request, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
        CHECK_INT(s.freed, 1);
        CHECK(s.request == MPI_REQUEST_NULL);
    }
    state s = {.free_code = MPI_ERR_ARG, .cancel_code = MPI_ERR_IO};
    MPI_Request requests[2] = {MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    OK(MPI_Grequest_start(query, release, cancel, &s, &requests[1]));
    CHECK_INT(MPI_Cancel(&requests[1]), MPI_ERR_IO);
    OK(MPI_Grequest_complete(requests[1]));
    CHECK_INT(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK_INT(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_INT(statuses[1].MPI_ERROR, MPI_ERR_ARG);
}

static void among_messages(void)
{
    int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size, sent = lt_rank, got = -1;
    for (int form = 0; form < 4; form++) {
        state s = {0};
        pthread_t thread;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        int done = 0, count, index, indices[2];
        OK(MPI_Irecv(&got, 1, MPI_INT, from, 4, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Grequest_start(query, release, cancel, &s, &s.request));
        requests[1] = s.request;
        OK(MPI_Send(&sent, 1, MPI_INT, to, 4, MPI_COMM_WORLD));
        pthread_create(&thread, NULL, complete_later, &s);
        switch (form) {
        case 0:
            OK(MPI_Waitall(2, requests, statuses));
            check_status(&statuses[1]);
            break;
        case 1:
            for (done = 0; done < 2; done++) {
                OK(MPI_Waitany(2, requests, &index, &statuses[0]));
                CHECK(index == 0 || index == 1);
            }
            break;
        case 2:
            while (done < 2) {
                OK(MPI_Waitsome(2, requests, &count, indices, statuses));
                done += count;
            }
            break;
        default:
            while (!done)
                OK(MPI_Testall(2, requests, &done, statuses));
            check_status(&statuses[1]);
        }
        pthread_join(thread, NULL);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
        CHECK_INT(got, from);
        CHECK_INT(s.freed, 1);
    }
}

static void wrong_use(void)
{
    state s = {0};
    MPI_Request request;
    int value = 0;
    FAILS(MPI_ERR_ARG, MPI_Grequest_start(NULL, release, cancel, &s, &request));
    FAILS(MPI_ERR_ARG, MPI_Grequest_start(query, NULL, cancel, &s, &request));
    FAILS(MPI_ERR_ARG, MPI_Grequest_start(query, release, NULL, &s, &request));
    FAILS(MPI_ERR_ARG, MPI_Grequest_start(query, release, cancel, &s, NULL));
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(MPI_REQUEST_NULL));
    OK(MPI_Irecv(&value, 1, MPI_INT, lt_rank, 9, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    OK(MPI_Send(&value, 1, MPI_INT, lt_rank, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Grequest_start(query, release, cancel, &s, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

LT_MAIN("grequest", TEST(another_thread_completes), TEST(looks_do_not_free), TEST(freed_requests),
        TEST(cancel_is_told_whether_it_is_complete), TEST(codes_of_the_functions_come_back), TEST(among_messages),
        TEST(wrong_use))
