/* Wrong programs: several threads in one rank (MPI-5 section 11.6). */
#include "cases.h"

#include <pthread.h>
#include <semaphore.h>

#define WORLD MPI_COMM_WORLD

static int x[8], y[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_locked;

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
    return thread;
}

static void *receive_7(void *nothing)
{
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 7, WORLD, ANY);
    return nothing;
}

static void *receive_8(void *nothing)
{
    MPI_Recv(y, 1, MPI_INT, 1 - rank, 8, WORLD, ANY);
    return nothing;
}

static void join_of_a_thread_that_waits(void)
{
    pthread_join(start(receive_7), NULL);
}

static void two_threads_wait(void)
{
    pthread_t a = start(receive_7), b = start(receive_8);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

static void *lock_and_receive(void *nothing)
{
    pthread_mutex_lock(&lock);
    sem_post(&is_locked);
    MPI_Recv(x, 1, MPI_INT, 1 - rank, 7, WORLD, ANY);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void receive_under_a_lock_that_the_sender_needs(void)
{
    sem_init(&is_locked, 0, 0);
    pthread_t thread = start(lock_and_receive);
    sem_wait(&is_locked);
    pthread_mutex_lock(&lock);
    MPI_Send(y, 1, MPI_INT, 1 - rank, 7, WORLD);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

static void *wait_in_barrier(void *nothing)
{
    MPI_Barrier(WORLD);
    return nothing;
}

static void more_threads_in_a_barrier_than_ranks(void)
{
    /* Rank 0 has two threads in a barrier of the same communicator; rank 1 comes only once. */
    if (rank == 0) {
        pthread_t a = start(wait_in_barrier);
        pthread_join(a, NULL);
        MPI_Barrier(WORLD);
    } else {
        MPI_Barrier(WORLD);
        MPI_Recv(x, 1, MPI_INT, 0, 1, WORLD, ANY);
    }
}

static void *receive_beyond_the_end(void *nothing)
{
    MPI_Recv(x, 1, MPI_INT, size, 7, WORLD, ANY);
    return nothing;
}

static void error_in_a_thread(void)
{
    pthread_join(start(receive_beyond_the_end), NULL);
}

static void *finalize_here(void *nothing)
{
    MPI_Finalize();
    return nothing;
}

static void finalize_in_another_thread(void)
{
    /* MPI_Finalize belongs to the thread of MPI_Init; the main thread then calls it once more. */
    pthread_join(start(finalize_here), NULL);
}

static MPI_Request shared_request;

static void *wait_for_shared(void *nothing)
{
    MPI_Request copy = shared_request;
    MPI_Wait(&copy, MPI_STATUS_IGNORE);
    return nothing;
}

static void two_threads_wait_for_one_request(void)
{
    MPI_Irecv(x, 1, MPI_INT, rank, 7, WORLD, &shared_request);
    pthread_t a = start(wait_for_shared), b = start(wait_for_shared);
    nap(0.3);
    MPI_Send(y, 1, MPI_INT, rank, 7, WORLD);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

CASES(MPI_THREAD_MULTIPLE, CASE(join_of_a_thread_that_waits), CASE(two_threads_wait),
      CASE(receive_under_a_lock_that_the_sender_needs), CASE(more_threads_in_a_barrier_than_ranks),
      CASE(error_in_a_thread), CASE(finalize_in_another_thread), CASE(two_threads_wait_for_one_request))
