/* Threads that sleep in the library beside threads of their process that communicate, pause and poll: whoever is
 * awaited is woken, by whichever thread it is that takes the message in (MPI-5 section 11.6).
 *
 * In every thread a token goes round all ranks, in a way of its own. A rank holds it for a while without a call of MPI,
 * so that all others sleep. A wake-up that is lost makes the program hang. */
#include "limosa_test.h"

#include <pthread.h>
#include <unistd.h>

enum { WAYS = 6, LONG = 40000 };

static MPI_Comm comms[WAYS];
static int rounds = 30, left, right;

static unsigned draw(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

/* Holds the token. */
static void hold(unsigned *state)
{
    unsigned n = draw(state) % 4;
    if (n == 0)
        usleep(draw(state) % 3000);
    else if (n == 1)
        for (volatile int i = 0; i < 20000; i++)
            ;
}

static void take(int way, int *token, int count, unsigned *state)
{
    MPI_Comm comm = comms[way];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int index, flag = 0, other;
    switch (way) {
    case 0:
    case 3: OK(MPI_Recv(token, count, MPI_INT, left, 0, comm, MPI_STATUS_IGNORE)); break;
    case 1:
        OK(MPI_Irecv(token, count, MPI_INT, left, 0, comm, &requests[1]));
        OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
        CHECK_INT(index, 1);
        break;
    case 2:
        OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
        OK(MPI_Recv(token, count, MPI_INT, left, 0, comm, MPI_STATUS_IGNORE));
        break;
    case 4:
        OK(MPI_Irecv(token, count, MPI_INT, left, 0, comm, &requests[0]));
        OK(MPI_Irecv(&other, 1, MPI_INT, left, 1, comm, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        break;
    default:
        OK(MPI_Irecv(token, count, MPI_INT, left, 0, comm, &requests[0]));
        while (!flag) {
            OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
            if (!flag && draw(state) % 8 == 0)
                usleep(50);
        }
    }
}

static void give(int way, int *token, int count)
{
    MPI_Comm comm = comms[way];
    MPI_Request requests[2];
    switch (way) {
    case 3: OK(MPI_Ssend(token, count, MPI_INT, right, 0, comm)); break;
    case 4:
        OK(MPI_Isend(token, 1, MPI_INT, right, 1, comm, &requests[0]));
        OK(MPI_Isend(token, count, MPI_INT, right, 0, comm, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        break;
    default: OK(MPI_Send(token, count, MPI_INT, right, 0, comm));
    }
}

static void *pass_on(void *argument)
{
    int way = (int)(intptr_t)argument;
    unsigned state = (unsigned)(lt_rank * WAYS + way), common = (unsigned)way;
    int *token = calloc(LONG, sizeof(int));
    for (int round = 0; round < rounds; round++) {
        int count = draw(&common) % 3 == 0 ? LONG : 1, first = (int)(draw(&common) % (unsigned)lt_size);
        if (lt_rank == first) {
            hold(&state);
            for (int i = 0; i < count; i++)
                token[i] = round + i;
            give(way, token, count);
        }
        take(way, token, count, &state);
        CHECK_INT(token[0], round);
        CHECK_INT(token[count - 1], round + count - 1);
        if (lt_rank != first) {
            hold(&state);
            give(way, token, count);
        }
    }
    free(token);
    return NULL;
}

/* Messages all the time: this thread polls while the others sleep. */
static void *exchange(void *comm)
{
    int value = 0;
    for (int i = 0; i < rounds * 100; i++) {
        MPI_Request request;
        OK(MPI_Irecv(&value, 1, MPI_INT, left, 0, *(MPI_Comm *)comm, &request));
        OK(MPI_Send(&i, 1, MPI_INT, right, 0, *(MPI_Comm *)comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_INT(value, i);
        if (i % 500 == 499)
            usleep(1000);
    }
    return NULL;
}

static void *meet(void *comm)
{
    unsigned state = (unsigned)lt_rank;
    for (int i = 0; i < rounds; i++) {
        int sum = 0;
        hold(&state);
        OK(MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm));
        CHECK_INT(sum, lt_size * i);
    }
    return NULL;
}

static void together(const int *ways, int n, int exchanges, int meets)
{
    pthread_t threads[WAYS + 2];
    MPI_Comm own[2];
    int started = 0;
    left = (lt_rank + lt_size - 1) % lt_size;
    right = (lt_rank + 1) % lt_size;
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[ways[i]]));
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
    for (int i = 0; i < n; i++)
        pthread_create(&threads[started++], NULL, pass_on, (void *)(intptr_t)ways[i]);
    if (exchanges)
        pthread_create(&threads[started++], NULL, exchange, &own[0]);
    if (meets)
        pthread_create(&threads[started++], NULL, meet, &own[1]);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free(&comms[ways[i]]));
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_free(&own[i]));
}

static void a_receiver_beside_an_exchange(void)
{
    together((int[]){0}, 1, 1, 0);
}

static void two_receivers(void)
{
    together((int[]){0, 3}, 2, 0, 0);
}

static void receives_of_all_sorts_beside_an_exchange(void)
{
    together((int[]){0, 3, 4}, 3, 1, 0);
}

static void a_collective_beside_an_exchange(void)
{
    together((int[]){0}, 1, 1, 1);
}

static void all(void)
{
    together((int[]){0, 1, 2, 3, 4, 5}, 6, 1, 1);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(a_receiver_beside_an_exchange), TEST(two_receivers),
                                    TEST(receives_of_all_sorts_beside_an_exchange),
                                    TEST(a_collective_beside_an_exchange), TEST(all)};
    int provided = -1;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return 98;
    if (argc > 1)
        rounds = atoi(argv[1]);
    long failures = lt_run("threads_asleep", tests, sizeof tests / sizeof *tests);
    MPI_Finalize();
    return failures != 0;
}
