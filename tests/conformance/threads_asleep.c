/* Threads that sleep in the library beside threads of their process that communicate, pause and poll: the thread that
 * is awaited is woken, whatever it waits for, and by whichever thread it is that takes the message in (MPI-5
 * section 11.6).
 *
 * In every thread a token goes round all ranks, in a way of its own. A rank holds it for a while without a call of MPI,
 * so that all others sleep. A wake-up that is lost makes the program hang. */
#include "io.h"

#include <pthread.h>
#include <unistd.h>

enum { WAYS = 7, LONG = 40000 };

/* What threads meet in. */
enum { REDUCE, BARRIER, BACKGROUND, FENCE, POST, LOCK, ACCESS, MEETINGS };

static MPI_Comm comms[WAYS];
static int rounds = 30, left, right;

static unsigned pick(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

/* Holds the token. */
static void hold(unsigned *state)
{
    unsigned n = pick(state) % 4;
    if (n == 0)
        usleep(pick(state) % 3000);
    else if (n == 1)
        for (volatile int i = 0; i < 20000; i++)
            ;
}

static void take(int way, int *token, int count, unsigned *state)
{
    MPI_Comm comm = comms[way];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Message message;
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
    case 6:
        OK(MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(token, count, MPI_INT, &message, MPI_STATUS_IGNORE));
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
            if (!flag && pick(state) % 8 == 0)
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
        int count = pick(&common) % 3 == 0 ? LONG : 1, first = (int)(pick(&common) % (unsigned)lt_size);
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

/* Collective operations, in the call and in the background. */
static void *reduce(void *comm)
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

static void *barrier(void *comm)
{
    unsigned state = (unsigned)lt_rank + 1;
    for (int i = 0; i < rounds; i++) {
        hold(&state);
        OK(MPI_Barrier(*(MPI_Comm *)comm));
    }
    return NULL;
}

static void *background(void *comm)
{
    unsigned state = (unsigned)lt_rank + 2;
    for (int i = 0; i < rounds; i++) {
        int sum = 0, index;
        MPI_Request requests[2];
        hold(&state);
        OK(MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm, &requests[0]));
        OK(MPI_Ibarrier(*(MPI_Comm *)comm, &requests[1]));
        OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_INT(sum, lt_size * i);
    }
    return NULL;
}

/* Windows: each rank puts a number into its right neighbour's. */
static void *fence(void *comm)
{
    unsigned state = (unsigned)lt_rank + 3;
    int *mine;
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, *(MPI_Comm *)comm, &mine, &win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < rounds; i++) {
        hold(&state);
        OK(MPI_Put(&i, 1, MPI_INT, right, 0, 1, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        CHECK_INT(*mine, i);
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_free(&win));
    return NULL;
}

static void *post(void *comm)
{
    unsigned state = (unsigned)lt_rank + 4;
    int *mine;
    MPI_Win win;
    MPI_Group all, from, to;
    OK(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, *(MPI_Comm *)comm, &mine, &win));
    OK(MPI_Comm_group(*(MPI_Comm *)comm, &all));
    OK(MPI_Group_incl(all, 1, &left, &from));
    OK(MPI_Group_incl(all, 1, &right, &to));
    for (int i = 0; i < rounds; i++) {
        hold(&state);
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        OK(MPI_Put(&i, 1, MPI_INT, right, 0, 1, MPI_INT, win));
        hold(&state);
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        CHECK_INT(*mine, i);
    }
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&win));
    return NULL;
}

/* All ranks count in the first one's memory, one at a time. */
static void *lock(void *comm)
{
    unsigned state = (unsigned)lt_rank + 5;
    int *mine, count;
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, *(MPI_Comm *)comm, &mine, &win));
    *mine = 0;
    OK(MPI_Barrier(*(MPI_Comm *)comm));
    for (int i = 0; i < rounds; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&count, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        hold(&state);
        count++;
        OK(MPI_Put(&count, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Barrier(*(MPI_Comm *)comm));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(&count, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(0, win));
    CHECK_INT(count, lt_size * rounds);
    OK(MPI_Win_free(&win));
    return NULL;
}

/* Collective accesses to a file. */
static void *access_file(void *comm)
{
    unsigned state = (unsigned)lt_rank + 6;
    MPI_File file;
    OK(MPI_File_open(*(MPI_Comm *)comm, io_path("numbers"), NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int i = 0; i < rounds / 3; i++) {
        int number = i + lt_rank, back = -1;
        hold(&state);
        OK(MPI_File_write_at_all(file, lt_rank * (MPI_Offset)sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at_all(file, lt_rank * (MPI_Offset)sizeof number, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK_INT(back, number);
    }
    OK(MPI_File_close(&file));
    return NULL;
}

static void *(*const meet[MEETINGS])(void *) = {reduce, barrier, background, fence, post, lock, access_file};

static void together(const int *ways, int n, int exchanges, const int *meetings, int m)
{
    pthread_t threads[WAYS + 1 + MEETINGS];
    MPI_Comm own[MEETINGS], fast;
    int started = 0;
    left = (lt_rank + lt_size - 1) % lt_size;
    right = (lt_rank + 1) % lt_size;
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[ways[i]]));
    for (int i = 0; i < m; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &fast));
    for (int i = 0; i < n; i++)
        pthread_create(&threads[started++], NULL, pass_on, (void *)(intptr_t)ways[i]);
    if (exchanges)
        pthread_create(&threads[started++], NULL, exchange, &fast);
    for (int i = 0; i < m; i++)
        pthread_create(&threads[started++], NULL, meet[meetings[i]], &own[i]);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free(&comms[ways[i]]));
    for (int i = 0; i < m; i++)
        OK(MPI_Comm_free(&own[i]));
    OK(MPI_Comm_free(&fast));
}

static void a_receiver_beside_an_exchange(void)
{
    together((int[]){0}, 1, 1, NULL, 0);
}

static void two_receivers(void)
{
    together((int[]){0, 3}, 2, 0, NULL, 0);
}

static void receives_of_all_sorts_beside_an_exchange(void)
{
    together((int[]){0, 3, 4}, 3, 1, NULL, 0);
}

static void probes_beside_an_exchange(void)
{
    together((int[]){2, 6}, 2, 1, NULL, 0);
}

static void each_meeting_beside_an_exchange(void)
{
    for (int meeting = 0; meeting < MEETINGS; meeting++)
        together(NULL, 0, 1, &meeting, 1);
}

static void meetings_beside_receives_of_all_sorts(void)
{
    together((int[]){0, 3, 4}, 3, 0, (int[]){BARRIER, LOCK, POST}, 3);
}

static void all(void)
{
    together((int[]){0, 1, 2, 3, 4, 5, 6}, WAYS, 1, (int[]){REDUCE, BARRIER, BACKGROUND, FENCE, POST, LOCK, ACCESS},
             MEETINGS);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {TEST(a_receiver_beside_an_exchange),
                                    TEST(two_receivers),
                                    TEST(receives_of_all_sorts_beside_an_exchange),
                                    TEST(probes_beside_an_exchange),
                                    TEST(each_meeting_beside_an_exchange),
                                    TEST(meetings_beside_receives_of_all_sorts),
                                    TEST(all)};
    int provided = -1;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return 98;
    if (argc > 1)
        rounds = atoi(argv[1]);
    io_begin();
    long failures = lt_run("threads_asleep", tests, sizeof tests / sizeof *tests);
    io_end();
    MPI_Finalize();
    return failures != 0;
}
