/* MPI_Init_thread and concurrent calls: MPI-5 section 11.6. Ring traffic from several threads of each rank, with null
 * init arguments. */
#include "limosa_test.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200 };

static void levels(void)
{
    int provided = -1, main_thread = -1;
    OK(MPI_Query_thread(&provided));
    CHECK_INT(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&main_thread));
    CHECK_INT(main_thread, 1);
}

static void *not_main(void *unused)
{
    int main_thread = -1;
    (void)unused;
    OK(MPI_Is_thread_main(&main_thread));
    CHECK_INT(main_thread, 0);
    return NULL;
}

static void main_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, not_main, NULL);
    pthread_join(thread, NULL);
}

/* Each thread has a tag of its own: its messages must not be taken by another thread. */
static void *ring(void *argument)
{
    int thread = (int)(intptr_t)argument, to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = (size_t)((round * 37 + thread) % 5 == 0 ? 70000 : round % 300);
        unsigned char *out = lt_alloc(n), *in = lt_alloc(n);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        lt_fill(out, n, (uint64_t)(lt_rank * 1000 + round * 10 + thread));
        OK(MPI_Irecv(in, (int)n, MPI_BYTE, from, thread, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, (int)n, MPI_BYTE, to, thread, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[0], from, thread, MPI_BYTE, (int)n);
        CHECK_FILLED(in, n, (uint64_t)(from * 1000 + round * 10 + thread));
        free(out);
        free(in);
    }
    return NULL;
}

static void concurrent_rings(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, ring, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static MPI_Comm thread_comms[THREADS];

/* Collectives run at the same time on different communicators, and objects are made and freed by any thread. */
static void *collectives(void *argument)
{
    intptr_t thread = (intptr_t)argument;
    for (int round = 0; round < 50; round++) {
        int sum = -1, value = lt_rank + (int)thread;
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, thread_comms[thread]));
        CHECK_INT(sum, lt_size * (lt_size - 1) / 2 + lt_size * (int)thread);
        MPI_Datatype type;
        OK(MPI_Type_vector(3, 1, 2, MPI_INT, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_free(&type));
        if (round % 10 == 0) {
            MPI_Comm dup;
            OK(MPI_Comm_dup(thread_comms[thread], &dup));
            OK(MPI_Barrier(dup));
            OK(MPI_Comm_free(&dup));
        }
    }
    return NULL;
}

static void concurrent_collectives(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &thread_comms[i]));
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, collectives, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&thread_comms[i]));
}

static void *wait_for_request(void *request)
{
    MPI_Status status;
    OK(MPI_Wait(request, &status));
    CHECK_INT(status.MPI_TAG, 77);
    return NULL;
}

/* A thread blocked in MPI_Wait does not keep a second one from sending the message that it waits for. */
static void blocked_thread_blocks_nobody(void)
{
    pthread_t thread;
    int in = 0, out = 5;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &request));
    pthread_create(&thread, NULL, wait_for_request, &request);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&out, 1, MPI_INT, 0, 77, MPI_COMM_SELF));
    pthread_join(thread, NULL);
    CHECK_INT(in, 5);
    CHECK_PTR(request, MPI_REQUEST_NULL);
}

/* While a function of the program runs in a reduction, no lock of the library is held that other threads need. */
static int inside, answered, in_time;

static void wait_inside(void *in, void *inout, int *n, MPI_Datatype *datatype)
{
    (void)datatype;
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 100000 && !__atomic_load_n(&answered, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    in_time = __atomic_load_n(&answered, __ATOMIC_ACQUIRE);
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void *answer(void *argument)
{
    int out = 5, in = 0;
    (void)argument;
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
        usleep(100);
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 77, &in, 1, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK_INT(in, 5);
    __atomic_store_n(&answered, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void others_communicate_during_a_user_function(void)
{
    const int lengths[] = {1, 1 << 19};
    MPI_Op op;
    OK(MPI_Op_create(wait_inside, 1, &op));
    for (int l = 0; l < 2; l++) {
        for (int test = 0; test < 2; test++) {
            size_t n = (size_t)lengths[l];
            int *out = calloc(n, sizeof *out), *in = calloc(n, sizeof *in), done = 0;
            MPI_Request request;
            pthread_t thread;
            out[0] = 1;
            inside = answered = 0;
            in_time = lt_size == 1;
            pthread_create(&thread, NULL, answer, NULL);
            OK(MPI_Iallreduce(out, in, (int)n, MPI_INT, op, MPI_COMM_WORLD, &request));
            while (test && !done)
                OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            /* By messages not every rank has to combine anything. */
            CHECK(!__atomic_load_n(&inside, __ATOMIC_ACQUIRE) || in_time);
            CHECK_INT(in[0], lt_size);
            __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
            pthread_join(thread, NULL);
            free(out);
            free(in);
        }
    }
    OK(MPI_Op_free(&op));
}

int main(void)
{
    static const lt_test tests[] = {TEST(levels),
                                    TEST(main_thread),
                                    TEST(concurrent_rings),
                                    TEST(concurrent_collectives),
                                    TEST(blocked_thread_blocks_nobody),
                                    TEST(others_communicate_during_a_user_function)};
    int provided = -1;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS || provided != MPI_THREAD_MULTIPLE)
        return 98;
    long failures = lt_run("threads", tests, sizeof tests / sizeof *tests);
    MPI_Finalize();
    return failures != 0;
}
