/* Correct programs: several threads in one rank. Nothing may be reported about them. */
#include "cases.h"

#include <pthread.h>

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
    return thread;
}

static void *ping_pong(void *nothing)
{
    for (int i = 0; i < 200; i++)
        if (rank == 0) {
            MPI_Send(x, 1, MPI_INT, 1, 7, WORLD);
            MPI_Recv(x, 1, MPI_INT, 1, 7, WORLD, ANY);
        } else {
            MPI_Recv(x, 1, MPI_INT, 0, 7, WORLD, ANY);
            MPI_Send(x, 1, MPI_INT, 0, 7, WORLD);
        }
    return nothing;
}

static void messages_in_a_thread(void)
{
    pthread_join(start(ping_pong), NULL);
}

static void *sleep_then_send(void *nothing)
{
    nap(5);
    MPI_Send(y, 1, MPI_INT, 1 - rank, 3, WORLD);
    return nothing;
}

static void thread_that_sends_later(void)
{
    /* Both main threads wait for a message that a thread of its partner, which has not called MPI yet, will send. */
    pthread_t thread = start(sleep_then_send);
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 3, WORLD, ANY);
    pthread_join(thread, NULL);
}

static void *compute_then_send(void *nothing)
{
    compute(4);
    MPI_Send(y, 1, MPI_INT, 1 - rank, 3, WORLD);
    return nothing;
}

static void thread_that_computes(void)
{
    pthread_t thread = start(compute_then_send);
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 3, WORLD, ANY);
    pthread_join(thread, NULL);
}

static void *hold_the_lock(void *nothing)
{
    pthread_mutex_lock(&lock);
    compute(4);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void main_thread_waits_for_a_lock(void)
{
    if (rank == 0) {
        pthread_t thread = start(hold_the_lock);
        nap(0.2);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    }
    MPI_Barrier(WORLD);
}

static void *signal_later(void *nothing)
{
    nap(4);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void main_thread_waits_for_a_condition(void)
{
    pthread_t thread = start(signal_later);
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    MPI_Barrier(WORLD);
}

static void *serve(void *nothing)
{
    MPI_Status status;
    do {
        MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
    } while (status.MPI_TAG != 1);
    return nothing;
}

static void idle_server_thread(void)
{
    pthread_t thread = start(serve);
    compute(rank == 0 ? 3 : 0.5);
    MPI_Send(y, 1, MPI_INT, rank, 1, WORLD);
    pthread_join(thread, NULL);
}

static void *collective_on_a_copy(void *nothing)
{
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_SELF, &dup);
    for (int i = 0; i < 100; i++)
        MPI_Barrier(dup);
    MPI_Comm_free(&dup);
    return nothing;
}

static void collectives_of_two_threads(void)
{
    pthread_t thread = start(collective_on_a_copy);
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, WORLD);
    pthread_join(thread, NULL);
}

static void *return_at_once(void *nothing)
{
    return nothing;
}

static void short_lived_threads(void)
{
    for (int i = 0; i < 100; i++)
        pthread_join(start(return_at_once), NULL);
    MPI_Barrier(WORLD);
}

CASES(MPI_THREAD_MULTIPLE, CASE(messages_in_a_thread), CASE(thread_that_sends_later), CASE(thread_that_computes),
      CASE(main_thread_waits_for_a_lock), CASE(main_thread_waits_for_a_condition), CASE(idle_server_thread),
      CASE(collectives_of_two_threads), CASE(short_lived_threads))
