/* Completion: all wait and test forms, MPI_Request_get_status and its array forms, null and inactive requests, cancel,
 * free, errors in statuses, many requests: MPI-5 sections 3.7.3 to 3.7.6, 3.8.4, 3.9. */
#include "limosa_test.h"

#include <unistd.h>

enum { N = 8 };
static int to, from;

static void setup(void)
{
    to = (lt_rank + 1) % lt_size;
    from = (lt_rank + lt_size - 1) % lt_size;
}

static void null_requests(void)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int flag = 0, index = 5, count = 5, indices[3];
    OK(MPI_Wait(&requests[0], &status));
    CHECK_EMPTY(&status);
    OK(MPI_Test(&requests[0], &flag, &status));
    CHECK_INT(flag, 1);
    CHECK_EMPTY(&status);
    OK(MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 3; i++)
        CHECK_EMPTY(&statuses[i]);
    flag = 0;
    OK(MPI_Testall(3, requests, &flag, statuses));
    CHECK_INT(flag, 1);
    OK(MPI_Waitany(3, requests, &index, &status));
    CHECK_INT(index, MPI_UNDEFINED);
    CHECK_EMPTY(&status);
    flag = 0;
    OK(MPI_Testany(3, requests, &index, &flag, &status));
    CHECK_INT(flag, 1);
    CHECK_INT(index, MPI_UNDEFINED);
    CHECK_EMPTY(&status);
    OK(MPI_Waitsome(3, requests, &count, indices, statuses));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Testsome(3, requests, &count, indices, statuses));
    CHECK_INT(count, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status));
    CHECK_INT(flag, 1);
    CHECK_EMPTY(&status);
}

static void no_requests_at_all(void)
{
    int flag = 0, index = 5, count = 5;
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    CHECK_INT(flag, 1);
    OK(MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE));
    CHECK_INT(index, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Testany(0, NULL, &index, &flag, MPI_STATUS_IGNORE));
    CHECK_INT(flag, 1);
    CHECK_INT(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(0, NULL, &count, NULL, MPI_STATUSES_IGNORE));
    CHECK_INT(count, MPI_UNDEFINED);
}

static void inactive_requests(void)
{
    int value = 1, flag = 0, index;
    MPI_Request requests[2], kept;
    MPI_Status status;
    OK(MPI_Send_init(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[0]));
    requests[1] = MPI_REQUEST_NULL;
    kept = requests[0];
    OK(MPI_Wait(&requests[0], &status));
    CHECK_EMPTY(&status);
    CHECK_PTR(requests[0], kept);
    OK(MPI_Test(&requests[0], &flag, &status));
    CHECK_INT(flag, 1);
    CHECK_EMPTY(&status);
    OK(MPI_Waitany(2, requests, &index, &status));
    CHECK_INT(index, MPI_UNDEFINED);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&requests[0]));
}

/* Posts N receives with tags 0..N-1; the matching sends are started by `send_all`. */
static void receive_all(int in[N], MPI_Request requests[N])
{
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &requests[i]));
    }
}

static void send_one(int i)
{
    int value = 100 * lt_rank + i;
    OK(MPI_Send(&value, 1, MPI_INT, to, i, MPI_COMM_WORLD));
}

static void test_before_and_after(void)
{
    int in[N], flag = 1, index = 7, count = -1, indices[N];
    MPI_Request requests[N];
    MPI_Status statuses[N];
    receive_all(in, requests);
    OK(MPI_Test(&requests[0], &flag, &statuses[0]));
    CHECK_INT(flag, 0);
    OK(MPI_Testall(N, requests, &flag, statuses));
    CHECK_INT(flag, 0);
    flag = 1;
    OK(MPI_Testany(N, requests, &index, &flag, &statuses[0]));
    CHECK_INT(flag, 0);
    CHECK_INT(index, MPI_UNDEFINED);
    OK(MPI_Testsome(N, requests, &count, indices, statuses));
    CHECK_INT(count, 0);
    flag = 1;
    OK(MPI_Request_get_status(requests[0], &flag, &statuses[0]));
    CHECK_INT(flag, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < N; i++)
        send_one(i);
    /* Request_get_status reports the completion and leaves the request as it is. */
    flag = 0;
    while (!flag && OK(MPI_Request_get_status(requests[3], &flag, &statuses[3]))) {
    }
    CHECK(requests[3] != MPI_REQUEST_NULL);
    CHECK_STATUS(&statuses[3], from, 3, MPI_INT, 1);
    flag = 0;
    OK(MPI_Request_get_status(requests[3], &flag, MPI_STATUS_IGNORE));
    CHECK_INT(flag, 1);
    flag = 0;
    while (!flag && OK(MPI_Test(&requests[3], &flag, &statuses[3]))) {
    }
    CHECK_PTR(requests[3], MPI_REQUEST_NULL);
    CHECK_STATUS(&statuses[3], from, 3, MPI_INT, 1);
    flag = 0;
    while (!flag && OK(MPI_Testall(N, requests, &flag, statuses))) {
    }
    for (int i = 0; i < N; i++) {
        CHECK_PTR(requests[i], MPI_REQUEST_NULL);
        CHECK_INT(in[i], 100 * from + i);
        if (i != 3)
            CHECK_STATUS(&statuses[i], from, i, MPI_INT, 1);
        else
            CHECK_EMPTY(&statuses[i]);
    }
}

static void any_forms(void)
{
    for (int testing = 0; testing < 2; testing++) {
        int in[N], seen[N] = {0};
        MPI_Request requests[N];
        MPI_Status status;
        receive_all(in, requests);
        for (int i = N - 1; i >= 0; i--)
            send_one(i);
        for (int done = 0; done < N; done++) {
            int index = -1, flag = 0;
            if (testing) {
                while (!flag && OK(MPI_Testany(N, requests, &index, &flag, &status))) {
                }
            } else {
                OK(MPI_Waitany(N, requests, &index, &status));
            }
            if (index < 0 || index >= N) {
                lt_fail(__FILE__, __LINE__, "index %d of %d requests", index, N);
                break;
            }
            CHECK_INT(seen[index]++, 0);
            CHECK_PTR(requests[index], MPI_REQUEST_NULL);
            CHECK_INT(in[index], 100 * from + index);
            CHECK_STATUS(&status, from, index, MPI_INT, 1);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void some_forms(void)
{
    for (int testing = 0; testing < 2; testing++) {
        int in[N], seen[N] = {0}, done = 0;
        MPI_Request requests[N];
        receive_all(in, requests);
        for (int i = 0; i < N; i++)
            send_one((i * 3) % N);
        while (done < N) {
            int count = -1, indices[N];
            MPI_Status statuses[N];
            OK((testing ? MPI_Testsome : MPI_Waitsome)(N, requests, &count, indices, statuses));
            if (count < !testing || count > N) {
                lt_fail(__FILE__, __LINE__, "outcount %d of %d requests", count, N);
                break;
            }
            for (int i = 0; i < count; i++) {
                CHECK_INT(seen[indices[i]]++, 0);
                CHECK_PTR(requests[indices[i]], MPI_REQUEST_NULL);
                CHECK_INT(in[indices[i]], 100 * from + indices[i]);
                CHECK_STATUS(&statuses[i], from, indices[i], MPI_INT, 1);
            }
            done += count;
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void get_status_of_arrays(void)
{
    int in[N], flag = 1, index, count, indices[N];
    MPI_Request requests[N];
    MPI_Status status, statuses[N];
    receive_all(in, requests);
    OK(MPI_Request_get_status_any(N, requests, &index, &flag, &status));
    CHECK_INT(flag, 0);
    OK(MPI_Request_get_status_all(N, requests, &flag, statuses));
    CHECK_INT(flag, 0);
    OK(MPI_Request_get_status_some(N, requests, &count, indices, statuses));
    CHECK_INT(count, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    send_one(5);
    while (!flag && OK(MPI_Request_get_status_any(N, requests, &index, &flag, &status))) {
    }
    CHECK_INT(index, 5);
    CHECK_STATUS(&status, from, 5, MPI_INT, 1);
    OK(MPI_Request_get_status_some(N, requests, &count, indices, statuses));
    CHECK_INT(count, 1);
    CHECK_INT(indices[0], 5);
    CHECK_STATUS(&statuses[0], from, 5, MPI_INT, 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) {
        if (i != 5)
            send_one(i);
    }
    flag = 0;
    while (!flag && OK(MPI_Request_get_status_all(N, requests, &flag, statuses))) {
    }
    for (int i = 0; i < N; i++) {
        CHECK_STATUS(&statuses[i], from, i, MPI_INT, 1);
        CHECK(requests[i] != MPI_REQUEST_NULL);
    }
    OK(MPI_Waitall(N, requests, statuses));
    for (int i = 0; i < N; i++)
        CHECK_INT(in[i], 100 * from + i);
}

static void ignored_statuses(void)
{
    int in[N], flag = 0;
    MPI_Request requests[N];
    receive_all(in, requests);
    for (int i = 0; i < N; i++)
        send_one(i);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    while (!flag && OK(MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE))) {
    }
    OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK_INT(in[i], 100 * from + i);
}

/* Receive statuses come from a receive; a send's status has a defined cancelled flag only. Setting and reading the
 * fields by function. */
static void status_fields(void)
{
    MPI_Status status;
    int source, tag, error, flag, count;
    MPI_Count elements;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_TAG));
    OK(MPI_Status_set_elements(&status, MPI_INT, 5));
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Status_get_source(&status, &source));
    OK(MPI_Status_get_tag(&status, &tag));
    OK(MPI_Status_get_error(&status, &error));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_INT(source, 3);
    CHECK_INT(status.MPI_SOURCE, 3);
    CHECK_INT(tag, 4);
    CHECK_INT(error, MPI_ERR_TAG);
    CHECK_INT(flag, 1);
    CHECK_INT(count, 5);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, MPI_INT, &count));
    CHECK_INT(count, 5);
    OK(MPI_Status_set_cancelled(&status, 0));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK_INT(flag, 0);
    OK(MPI_Status_set_elements_c(&status, MPI_BYTE, 5000000000));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &elements));
    CHECK_INT(elements, 5000000000);
    OK(MPI_Get_elements_c(&status, MPI_BYTE, &elements));
    CHECK_INT(elements, 5000000000);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_INT(count, MPI_UNDEFINED);
    OK(MPI_Get_count_c(&status, MPI_INT, &elements));
    CHECK_INT(elements, 1250000000);
}

static void cancel_receive(void)
{
    int in = 5, flag = 0;
    MPI_Request requests[2];
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 20, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    CHECK_PTR(requests[0], MPI_REQUEST_NULL);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK_INT(flag, 1);
    CHECK_INT(in, 5);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* A message sent now goes to the next receive, not to the cancelled one. */
    int out = 17, got = 0;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 20, &got, 1, MPI_INT, from, 20, MPI_COMM_WORLD, &status));
    CHECK_INT(got, 17);
    CHECK_INT(in, 5);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK_INT(flag, 0);
    /* A receive that has its message already is not cancelled. */
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 21, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, to, 21, MPI_COMM_WORLD, &requests[1]));
    for (flag = 0; !flag && OK(MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE));) {
    }
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK_INT(flag, 0);
    CHECK_INT(in, 17);
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    /* A persistent receive stays usable after a cancelled start. */
    OK(MPI_Recv_init(&in, 1, MPI_INT, from, 22, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Start(&requests[0]));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK_INT(flag, 1);
    CHECK(requests[0] != MPI_REQUEST_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Start(&requests[0]));
    out = 23;
    OK(MPI_Send(&out, 1, MPI_INT, to, 22, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[0], &status));
    CHECK_INT(in, 23);
    OK(MPI_Request_free(&requests[0]));
}

/* A freed request completes on its own. */
static void free_active(void)
{
    static int out[4], in[4];
    MPI_Request request;
    for (int i = 0; i < 4; i++) {
        out[i] = lt_rank * 10 + i;
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, from, 30 + i, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        CHECK_PTR(request, MPI_REQUEST_NULL);
        OK(MPI_Isend(&out[i], 1, MPI_INT, to, 30 + i, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
    }
    /* Non-overtaking: when this later message is here, the earlier ones of the same sender have been matched; give them
     * time to land. */
    int token = 1, got = 0;
    OK(MPI_Sendrecv(&token, 1, MPI_INT, to, 40, &got, 1, MPI_INT, from, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int tries = 0; tries < 100000 && ((volatile int *)in)[3] == -1; tries++) {
        int flag;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 41, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        usleep(1000);
    }
    for (int i = 0; i < 4; i++)
        CHECK_INT(in[i], from * 10 + i);
}

/* One truncated receive among good ones: MPI_ERR_IN_STATUS, and each status says what happened to its request. */
static void errors_in_statuses(void)
{
    int out[4] = {1, 2, 3, 4}, in[3][4] = {{0}}, classes[3];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    for (int i = 0; i < 3; i++)
        OK(MPI_Irecv(in[i], i == 1 ? 2 : 4, MPI_INT, from, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++)
        OK(MPI_Send(out, 4, MPI_INT, to, i, MPI_COMM_WORLD));
    int done[3] = {0}, truncated = 0;
    for (int round = 0; round < 3 && !(done[0] && done[1] && done[2]); round++) {
        int code = MPI_Waitall(3, requests, statuses);
        if (round == 0)
            CHECK_INT(lt_class(code), MPI_ERR_IN_STATUS);
        for (int i = 0; i < 3; i++) {
            classes[i] = code == MPI_SUCCESS ? MPI_SUCCESS : lt_class(statuses[i].MPI_ERROR);
            if (classes[i] == MPI_ERR_PENDING || done[i])
                continue;
            done[i] = 1;
            CHECK_INT(classes[i], i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
            truncated += classes[i] == MPI_ERR_TRUNCATE;
        }
    }
    CHECK_INT(truncated, 1);
    for (int i = 0; i < 3; i++)
        CHECK_PTR(requests[i], MPI_REQUEST_NULL);
    CHECK_BYTES(in[0], out, sizeof out);
    CHECK_BYTES(in[2], out, sizeof out);
    CHECK_INT(in[1][2], 0);
    CHECK_INT(in[1][3], 0);
}

static void startall(void)
{
    int out[N], in[N];
    MPI_Request requests[2 * N];
    for (int i = 0; i < N; i++) {
        OK(MPI_Recv_init(&in[i], 1, MPI_INT, i % 2 ? from : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Send_init(&out[i], 1, MPI_INT, to, i, MPI_COMM_WORLD, &requests[N + i]));
    }
    for (int round = 0; round < 20; round++) {
        MPI_Status statuses[2 * N];
        for (int i = 0; i < N; i++) {
            out[i] = lt_rank + i + round;
            in[i] = -1;
        }
        OK(MPI_Startall(2 * N, requests));
        if (round % 2) {
            OK(MPI_Waitall(2 * N, requests, statuses));
        } else {
            int index, seen = 0;
            while (OK(MPI_Waitany(2 * N, requests, &index, MPI_STATUS_IGNORE)) && index != MPI_UNDEFINED)
                seen++;
            CHECK_INT(seen, 2 * N);
        }
        for (int i = 0; i < N; i++)
            CHECK_INT(in[i], from + i + round);
    }
    for (int i = 0; i < 2 * N; i++)
        OK(MPI_Request_free(&requests[i]));
}

static void many_outstanding(void)
{
    enum { MANY = 10000 };
    static int out[MANY], in[MANY];
    static MPI_Request requests[2 * MANY];
    static MPI_Status statuses[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, from, i % 32768, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = 0; i < MANY; i++) {
        int tag = (int)((long)i * 3001 % MANY);
        out[tag] = lt_rank + tag;
        OK(MPI_Isend(&out[tag], 1, MPI_INT, to, tag, MPI_COMM_WORLD, &requests[MANY + i]));
    }
    OK(MPI_Waitall(2 * MANY, requests, statuses));
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(in[i], from + i);
        CHECK_INT(statuses[i].MPI_TAG, i);
    }
}

/* A handle that was waited for stays invalid while many others come and go, and waiting for it again harms none of
 * them. */
static void stale_handles(void)
{
    enum { MANY = 20000 };
    int in = 0, out = 0, harmed = 0, same = 0;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
    MPI_Request stale = request;
    OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
        MPI_Request copy = stale;
        int done = 0;
        same += request == stale;
        harmed += MPI_Test(&copy, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        out = i;
        OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_INT(in, i);
    }
    CHECK_INT(same, 0);
    CHECK_INT(harmed, 0);
}

LT_MAIN("p2p_requests", TEST(setup), TEST(null_requests), TEST(no_requests_at_all), TEST(inactive_requests),
        TEST(test_before_and_after), TEST(any_forms), TEST(some_forms), TEST(get_status_of_arrays),
        TEST(ignored_statuses), TEST(status_fields), TEST(cancel_receive), TEST(free_active), TEST(errors_in_statuses),
        TEST(startall), TEST(many_outstanding), TEST(stale_handles))
