/* Programs that wait: for ever, or for a long time.  usage: hangs what
 *
 * Each function below is one program for two ranks or more. One that ends normally prints "rank N done" at its end.
 */
#include <mpi.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void receive(int source, int tag, MPI_Comm comm)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, source, tag, comm, MPI_STATUS_IGNORE);
}

static void send(int dest, int tag, MPI_Comm comm)
{
    MPI_Send(&rank, 1, MPI_INT, dest, tag, comm);
}

/* The message that has come has another tag than the one that is awaited. */
static void tag(void)
{
    if (rank == 1)
        send(0, 6, MPI_COMM_WORLD);
    receive(1 - rank, 5, MPI_COMM_WORLD);
}

/* It comes from another rank (the process itself). */
static void source(void)
{
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    }
    receive(1 - rank, 5, MPI_COMM_WORLD);
}

/* It comes on another communicator. */
static void communicator(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_name(other, "rows");
    if (rank == 1)
        send(0, 5, other);
    receive(1 - rank, 5, MPI_COMM_WORLD);
}

static void *receive_in_thread(void *unused)
{
    (void)unused;
    receive(1 - rank, 5, MPI_COMM_WORLD);
    return NULL;
}

/* The main thread waits for the end of a thread, which waits for a message. */
static void join(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, receive_in_thread, NULL);
    pthread_join(thread, NULL);
}

/* The main thread waits for a lock that a thread holds, which waits for a message. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_locked;

static void *receive_with_lock(void *unused)
{
    pthread_mutex_lock(&mutex);
    sem_post(&is_locked);
    return receive_in_thread(unused);
}

static void lock(void)
{
    pthread_t thread;
    sem_init(&is_locked, 0, 0);
    pthread_create(&thread, NULL, receive_with_lock, NULL);
    sem_wait(&is_locked);
    pthread_mutex_lock(&mutex);
}

/* No thread of rank 0 is in the library: its main thread waits for a lock that stays taken. */
static void locked_out(void)
{
    pthread_mutex_lock(&mutex);
    if (rank == 0)
        pthread_mutex_lock(&mutex);
    receive(0, 5, MPI_COMM_WORLD);
}

static int seconds;

static void *send_later(void *unused)
{
    sleep((unsigned)seconds);
    send(1 - rank, 5, MPI_COMM_WORLD);
    return unused;
}

/* A thread that has never called the library before sends after some seconds what the other rank waits for. */
static void later(void)
{
    pthread_t thread;
    if (rank == 0)
        pthread_create(&thread, NULL, send_later, NULL);
    receive(1 - rank, rank == 0 ? 6 : 5, MPI_COMM_WORLD);
    if (rank == 0)
        pthread_join(thread, NULL);
    else
        send(0, 6, MPI_COMM_WORLD);
}

static void send_after_3_s(void)
{
    seconds = 3;
    if (rank == 1) {
        receive(0, 5, MPI_COMM_WORLD);
        send(0, 6, MPI_COMM_WORLD);
    } else {
        later();
    }
}

static void never_send(void)
{
    seconds = 1000;
    later();
}

static void poll_by_iprobe(void)
{
    for (int found = 0; !found;)
        MPI_Iprobe(1 - rank, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void poll_by_test(void)
{
    int value, done = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, &request);
    while (!done) {
        usleep(1000);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

static void poll_by_improbe(void)
{
    MPI_Message message;
    for (int found = 0; !found;)
        MPI_Improbe(1 - rank, 5, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
}

/* Two receives, of which neither ends. */
static MPI_Request requests[2];

static void receive_twice(void)
{
    static int values[2];
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 1 - rank, 5 + i, MPI_COMM_WORLD, &requests[i]);
}

static void poll_by_testany(void)
{
    receive_twice();
    for (int done = 0, index; !done;)
        MPI_Testany(2, requests, &index, &done, MPI_STATUS_IGNORE);
}

static void poll_by_testsome(void)
{
    int indices[2];
    receive_twice();
    for (int count = 0; count == 0;)
        MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
}

static void poll_by_get_status(void)
{
    receive_twice();
    for (int done = 0; !done;)
        MPI_Request_get_status(requests[0], &done, MPI_STATUS_IGNORE);
}

static void poll_by_get_status_any(void)
{
    receive_twice();
    for (int done = 0, index; !done;)
        MPI_Request_get_status_any(2, requests, &index, &done, MPI_STATUS_IGNORE);
}

/* Rank 1 has done its part of the reduction, rank 2 has not begun, and rank 0 waits for it. */
static void reduction(void)
{
    MPI_Request request;
    int sum = 0;
    if (rank < 2) {
        MPI_Ireduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    receive(0, 5, MPI_COMM_WORLD);
}

/* Rank 0 polls for what does not come while rank 1 waits for it. */
static void poll_while_another_waits(void)
{
    if (rank == 0)
        poll_by_iprobe();
    receive(0, 5, MPI_COMM_WORLD);
}

/* Rank 0 polls, for half of the time after which that is reported, and then does what its partner waits for. */
static void poll_for_a_while(void)
{
    int found = 0;
    for (double end = MPI_Wtime() + 2.5; rank == 0 && MPI_Wtime() < end;)
        MPI_Iprobe(1, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (rank == 0)
        send(1, 5, MPI_COMM_WORLD);
    else
        receive(0, 5, MPI_COMM_WORLD);
}

/* Rank 0 polls, finds something, and computes then for some seconds. */
static void compute_after_polling(void)
{
    int found = 0;
    if (rank == 1) {
        usleep(300 * 1000);
        send(0, 5, MPI_COMM_WORLD);
        receive(0, 6, MPI_COMM_WORLD);
        return;
    }
    while (!found)
        MPI_Iprobe(1, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    sleep(3);
    receive(1, 5, MPI_COMM_WORLD);
    send(1, 6, MPI_COMM_WORLD);
}

static void ibarrier_against_ibcast(void)
{
    MPI_Request request;
    int value = 0;
    if (rank == 0)
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
    else
        MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* One rank is not in the barrier; the others do not wait for each other. */
static void barrier(void)
{
    if (rank == 1)
        receive(0, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One rank of a ring does not exchange with its neighbours; its error is that it waits for a message. */
static void neighbours(void)
{
    MPI_Comm ring;
    int values[2] = {rank, rank}, received[2];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &ring);
    if (rank == 1)
        receive(0, 5, ring);
    MPI_Neighbor_alltoall(values, 1, MPI_INT, received, 1, MPI_INT, ring);
}

/* The intercommunicator of rank 0 and the others. */
static MPI_Comm between(void)
{
    MPI_Comm local, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 0, &inter);
    MPI_Comm_set_name(inter, "bridge");
    return inter;
}

/* Both sides receive. */
static void inter_receive(void)
{
    receive(0, 5, between());
}

/* A member of one group is not in a collective of both. */
static void inter_barrier(void)
{
    MPI_Comm inter = between();
    if (rank == 0)
        receive(0, 5, inter);
    MPI_Barrier(inter);
}

/* The other group never makes the intercommunicator. */
static void inter_create(void)
{
    if (rank == 0)
        receive(1, 5, MPI_COMM_WORLD);
    between();
}

/* Idle workers wait for their master, which sleeps, in each of its threads. */
static void *sleep_in_thread(void *unused)
{
    sleep(3);
    return unused;
}

static void idle_pool(void)
{
    if (rank > 0) {
        receive(0, 5, MPI_COMM_WORLD);
        return;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_in_thread, NULL);
    pthread_join(thread, NULL);
    for (int to = 1; to < size; to++)
        send(to, 5, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*play)(void);
} programs[] = {
    {"tag", tag},
    {"source", source},
    {"communicator", communicator},
    {"join", join},
    {"lock", lock},
    {"locked-out", locked_out},
    {"send-after-3-s", send_after_3_s},
    {"never-send", never_send},
    {"iprobe", poll_by_iprobe},
    {"test", poll_by_test},
    {"improbe", poll_by_improbe},
    {"testany", poll_by_testany},
    {"testsome", poll_by_testsome},
    {"get-status", poll_by_get_status},
    {"get-status-any", poll_by_get_status_any},
    {"reduction", reduction},
    {"poll-and-wait", poll_while_another_waits},
    {"poll-for-a-while", poll_for_a_while},
    {"compute-after-polling", compute_after_polling},
    {"background", ibarrier_against_ibcast},
    {"barrier", barrier},
    {"idle-pool", idle_pool},
    {"neighbours", neighbours},
    {"inter-receive", inter_receive},
    {"inter-barrier", inter_barrier},
    {"inter-create", inter_create},
};

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, what) == 0) {
            programs[i].play();
            MPI_Finalize();
            printf("rank %d done\n", rank);
            return 0;
        }
    }
    fprintf(stderr, "hangs: no such program: %s\n", what);
    return 99;
}
