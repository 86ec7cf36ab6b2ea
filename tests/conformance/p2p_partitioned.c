/* Partitioned communication: partitions in any order and from several threads, other partitions on the other side,
 * derived types, repeated starts, matching in order, MPI_PROC_NULL, wrong use: MPI-5 chapter 4. */
#include "limosa_test.h"

#include <pthread.h>

enum { MOST = 24 };
static int to, from;

static void setup(void)
{
    to = (lt_rank + 1) % lt_size;
    from = (lt_rank + lt_size - 1) % lt_size;
}

static int value_of(int rank, int round, int i)
{
    return rank * 1000003 + round * 1009 + i;
}

/* One ring of `send` partitions against `receive` ones, `elements` ints in all, some rounds. */
static void ring(int send, int receive, int elements, int rounds)
{
    int *out = calloc(elements + 1, sizeof(int)), *in = calloc(elements + 1, sizeof(int));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Psend_init(out, send, elements / send, MPI_INT, to, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, receive, elements / receive, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < elements; i++)
            in[i] = -1;
        if (round % 2)
            OK(MPI_Startall(2, requests));
        else {
            OK(MPI_Start(&requests[1]));
            OK(MPI_Start(&requests[0]));
        }
        for (int i = 0; i < elements; i++)
            out[i] = value_of(lt_rank, round, i);
        /* 7 and the numbers of partitions have no common divisor. */
        for (int i = 0; i < send; i++)
            OK(MPI_Pready((i * 7 + round) % send, requests[0]));
        int arrived = 0, flag;
        while (arrived < receive) {
            OK(MPI_Parrived(requests[1], arrived, &flag));
            if (!flag)
                continue;
            int each = elements / receive;
            for (int i = arrived * each; i < (arrived + 1) * each; i++)
                CHECK_INT(in[i], value_of(from, round, i));
            arrived++;
        }
        OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[1], from, 5, MPI_INT, elements);
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
        flag = 0;
        OK(MPI_Parrived(requests[1], receive - 1, &flag));
        CHECK_INT(flag, 1);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(out);
    free(in);
}

static void equal_and_other_partitions(void)
{
    int numbers[] = {1, 2, 3, 8, 24};
    for (int s = 0; s < 5; s++)
        for (int r = 0; r < 5; r++)
            ring(numbers[s], numbers[r], 48, 3);
    ring(4, 6, 24 << 10, 3);
    ring(8, 3, 24 << 15, 2);
}

/* Every second int of a vector on one side, dense ints at the receiver, cut elsewhere. */
static void derived_types(void)
{
    enum { PARTS = 6, EACH = 4 };
    MPI_Datatype pair, gaps;
    int out[PARTS * EACH * 4], in[PARTS * EACH * 2 + 1], other[PARTS * EACH * 4];
    MPI_Request requests[2];
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &gaps));
    OK(MPI_Type_commit(&gaps));
    for (int i = 0; i < PARTS * EACH * 4; i++)
        out[i] = lt_rank * 10000 + i, other[i] = -1;
    OK(MPI_Psend_init(out, PARTS, EACH, gaps, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 4, PARTS * EACH * 2 / 4, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready_range(0, PARTS - 1, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PARTS * EACH * 2; i++)
        CHECK_INT(in[i], from * 10000 + i * 2);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Psend_init(in, 3, PARTS * EACH * 2 / 3, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(other, PARTS, EACH, gaps, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    int list[] = {2, 0, 1};
    OK(MPI_Pready_list(3, list, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    int before = (from + lt_size - 1) % lt_size;
    for (int i = 0; i < PARTS * EACH * 4; i++)
        CHECK_INT(other[i], i % 2 ? -1 : before * 10000 + i);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&gaps));
}

/* Operations with the same tag match in the order in which they were made, not in that of their starts. */
static void matching_in_order(void)
{
    int out[3], in[3] = {-1, -1, -1};
    MPI_Request sends[3], receives[3];
    for (int i = 0; i < 3; i++) {
        out[i] = value_of(lt_rank, 9, i);
        OK(MPI_Psend_init(&out[i], 1, 1, MPI_INT, to, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(&in[i], 1, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]));
    }
    for (int i = 2; i >= 0; i--) {
        OK(MPI_Start(&sends[i]));
        OK(MPI_Pready(0, sends[i]));
    }
    OK(MPI_Startall(3, receives));
    OK(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(3, receives, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 3; i++) {
        CHECK_INT(in[i], value_of(from, 9, i));
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
}

static void not_matched_by_ordinary_receives(void)
{
    int out = lt_rank, in = -1, message = 77, got = -1, flag = 1;
    MPI_Request requests[2];
    OK(MPI_Psend_init(&out, 1, 1, MPI_INT, to, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Start(&requests[0]));
    OK(MPI_Pready(0, requests[0]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK_INT(flag, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Sendrecv(&message, 1, MPI_INT, to, 8, &got, 1, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(got, 77);
    OK(MPI_Precv_init(&in, 1, 1, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Start(&requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_INT(in, from);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

static MPI_Request shared;

static void *mark(void *first)
{
    for (int i = *(int *)first; i < MOST; i += 3)
        OK(MPI_Pready(i, shared));
    return NULL;
}

static void several_threads_mark(void)
{
    static int out[MOST * 100], in[MOST * 100], firsts[3] = {0, 1, 2};
    MPI_Request receive;
    OK(MPI_Psend_init(out, MOST, 100, MPI_INT, to, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &shared));
    OK(MPI_Precv_init(in, MOST / 2, 200, MPI_INT, from, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        for (int i = 0; i < MOST * 100; i++)
            out[i] = value_of(lt_rank, round, i), in[i] = -1;
        OK(MPI_Start(&receive));
        OK(MPI_Start(&shared));
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, mark, &firsts[i]);
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        OK(MPI_Wait(&shared, MPI_STATUS_IGNORE));
        for (int i = 0; i < MOST * 100; i++)
            CHECK_INT(in[i], value_of(from, round, i));
    }
    OK(MPI_Request_free(&shared));
    OK(MPI_Request_free(&receive));
}

static void no_process_and_no_bytes(void)
{
    int value = 4, flag = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Psend_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready_range(0, 1, requests[0]));
    OK(MPI_Parrived(requests[1], 1, &flag));
    CHECK_INT(flag, 1);
    OK(MPI_Waitall(2, requests, statuses));
    CHECK_INT(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    for (int partitions = 0; partitions < 3; partitions += 2) {
        OK(MPI_Psend_init(NULL, partitions, 0, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Precv_init(NULL, partitions, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
        for (int round = 0; round < 2; round++) {
            OK(MPI_Startall(2, requests));
            for (int i = 0; i < partitions; i++)
                OK(MPI_Pready(i, requests[0]));
            OK(MPI_Waitall(2, requests, statuses));
            CHECK_STATUS(&statuses[1], from, 1, MPI_INT, 0);
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
    }
}

/* A receive may have room for more than is sent. If it has too little, both sides end, the receiver with an error, and
 * both can go on. */
static void other_number_of_bytes(void)
{
    int out[8] = {0, 1, 2, 3, 4, 5, 6, 7}, in[8], elements[] = {4, 8}, count, flag;
    for (int which = 0; which < 2; which++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        OK(MPI_Psend_init(out, elements[which], 1, MPI_INT, to, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Precv_init(in, 2, elements[1 - which] / 2, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[1]));
        for (int round = 0; round < 2; round++) {
            memset(in, -1, sizeof in);
            OK(MPI_Startall(2, requests));
            OK(MPI_Pready_range(0, elements[which] - 1, requests[0]));
            if (which == 0) {
                do
                    OK(MPI_Parrived(requests[1], 0, &flag));
                while (!flag);
                OK(MPI_Waitall(2, requests, statuses));
                OK(MPI_Get_count(&statuses[1], MPI_INT, &count));
                CHECK_INT(count, 4);
                for (int i = 0; i < 8; i++)
                    CHECK_INT(in[i], i < 4 ? i : -1);
            } else {
                FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
                CHECK_INT(statuses[0].MPI_ERROR, MPI_SUCCESS);
                CHECK_INT(lt_class(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
            }
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
    }
}

static void wrong_use(void)
{
    int out[4] = {0}, in[4], flag;
    MPI_Request requests[2], ordinary;
    FAILS(MPI_ERR_ARG, MPI_Psend_init(out, -1, 1, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    FAILS(MPI_ERR_COUNT, MPI_Psend_init(out, 1, -1, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    FAILS(MPI_ERR_RANK, MPI_Psend_init(out, 1, 1, MPI_INT, lt_size, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    FAILS(MPI_ERR_TAG, MPI_Psend_init(out, 1, 1, MPI_INT, to, -5, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    FAILS(MPI_ERR_ARG, MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    FAILS(MPI_ERR_ARG, MPI_Precv_init(in, 1, 1, MPI_INT, from, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &ordinary));
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 4, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, requests[0]));
    OK(MPI_Startall(2, requests));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, requests[1]));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(requests[0], 0, &flag));
    FAILS(MPI_ERR_ARG, MPI_Pready(4, requests[0]));
    FAILS(MPI_ERR_ARG, MPI_Pready(-1, requests[0]));
    FAILS(MPI_ERR_ARG, MPI_Parrived(requests[1], 4, &flag));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(2, 1, requests[0]));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(0, 4, requests[0]));
    OK(MPI_Pready(1, requests[0]));
    FAILS(MPI_ERR_ARG, MPI_Pready(1, requests[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&requests[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&requests[0]));
    OK(MPI_Pready(0, requests[0]));
    OK(MPI_Pready_range(2, 3, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, requests[0]));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Send_init(out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &ordinary));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, ordinary));
    /* Nothing is under way: MPI-5 section 4.2.2. */
    flag = 0;
    OK(MPI_Parrived(ordinary, 0, &flag));
    CHECK_INT(flag, 1);
    OK(MPI_Request_free(&ordinary));
    flag = 0;
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK_INT(flag, 1);
}

LT_MAIN("p2p_partitioned", TEST(setup), TEST(equal_and_other_partitions), TEST(derived_types), TEST(matching_in_order),
        TEST(not_matched_by_ordinary_receives), TEST(several_threads_mark), TEST(no_process_and_no_bytes),
        TEST(other_number_of_bytes), TEST(wrong_use))
