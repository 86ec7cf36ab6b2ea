/* A storm of signals.  usage: signals restart|interrupt [period]
 *
 * From before MPI_Init to after MPI_Finalize two timers of every rank send it SIGALRM and SIGUSR1, one each `period`
 * microseconds, to handlers with SA_RESTART (`restart`) or without (`interrupt`, where system calls end with EINTR).
 * MPI-5 section 11.2.1 leaves these signals to the program, so every result must be right all the same.
 */
#include "coll.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, users;
static timer_t user_timer;

static void on_signal(int number)
{
    int before = errno;
    if (number == SIGALRM)
        alarms++;
    else
        users++;
    errno = before;
}

static void storm(int flags, long period)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    struct itimerval each = {{0, period}, {0, period}};
    struct itimerspec other = {{0, period * 1300}, {0, period * 1300}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    if (sigaction(SIGALRM, &action, NULL) || sigaction(SIGUSR1, &action, NULL) || setitimer(ITIMER_REAL, &each, NULL) ||
        timer_create(CLOCK_MONOTONIC, &event, &user_timer) || timer_settime(user_timer, 0, &other, NULL)) {
        perror("signals: timers");
        exit(97);
    }
}

/* Before version 6.9 Linux let any signal interrupt the taking of memory for a file. Newer ones do not, so that the
 * storm cannot show what the library does about it: in these functions, which the library calls instead of the C
 * library's, every second call is interrupted. */
static int take_memory(int fd, int mode, off_t offset, off_t length)
{
    static unsigned calls;
    if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 2 == 0)
        return EINTR;
    return syscall(SYS_fallocate, fd, mode, offset, length) == 0 ? 0 : errno;
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    return take_memory(fd, 0, offset, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    int error = take_memory(fd, mode, offset, length);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));
int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));

/* Lets time pass that signals do not shorten. */
static void pass(double seconds)
{
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        usleep(1000);
}

/* The borders of the ways in which messages travel, and what lies beyond. */
static const int lengths[] = {0, 1, 40, 41, 264, 265, 4096, 4097, 16384, 16385, 65536, 65537, 262144, 1 << 20, 4 << 20};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

/* Each rank receives 10,000 signals a second, so that more ranks than processors hardly advance: fewer rounds. */
static int rounds(void)
{
    return lt_size > 2 ? 10 : 20;
}

static void messages_of_all_lengths_arrive(void)
{
    int right = (lt_rank + 1) % lt_size, left = (lt_rank + lt_size - 1) % lt_size;
    unsigned char *out = lt_alloc(4 << 20), *in = lt_alloc(4 << 20);
    for (int round = 0; round < rounds(); round++) {
        for (int i = 0; i < N_LENGTHS; i++) {
            size_t n = (size_t)lengths[i];
            uint64_t seed = (uint64_t)(round * 1000 + i * 20);
            MPI_Status status;
            MPI_Request requests[2];
            lt_fill(out, n, seed + (uint64_t)lt_rank);
            memset(in, 0, n);
            OK(MPI_Irecv(in, (int)n, MPI_BYTE, left, i, MPI_COMM_WORLD, &requests[0]));
            OK((round % 2 ? MPI_Issend : MPI_Isend)(out, (int)n, MPI_BYTE, right, i, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Wait(&requests[0], &status));
            OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            CHECK_STATUS(&status, left, i, MPI_BYTE, (int)n);
            CHECK_FILLED(in, n, seed + (uint64_t)left);

            if (lt_size == 1)
                continue;
            /* Blocking, from one rank to the next one, all round. */
            memset(in, 0, n);
            if (lt_rank == 0)
                OK(MPI_Send(out, (int)n, MPI_BYTE, right, i, MPI_COMM_WORLD));
            OK(MPI_Recv(in, (int)n, MPI_BYTE, left, i, MPI_COMM_WORLD, &status));
            CHECK_FILLED(in, n, seed + (uint64_t)left);
            if (lt_rank != 0)
                OK(MPI_Send(out, (int)n, MPI_BYTE, right, i, MPI_COMM_WORLD));
        }
    }
    free(out);
    free(in);
}

/* Memory that ranks share is set up when communicators are made and when ranks first talk: that must not be disturbed
 * either. */
static void collectives_on_new_communicators_are_right(void)
{
    for (int round = 0; round < rounds(); round++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        rank = lt_rank, size = lt_size;
        for (int c = 0; c < N_COUNTS; c++) {
            int n = counts[c], root = (round + c) % size, background = round % 2;
            int *mine = buffer(0, n), *all = buffer(0, (long)n * size), *sum = buffer(0, n);
            MPI_Request request;
            for (int i = 0; i < n; i++)
                put(mine, 0, i, value(rank, 0, i));
            if (background) {
                OK(MPI_Iallgather(mine, n, MPI_INT, all, n, MPI_INT, comm, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Iallreduce(mine, sum, n, MPI_INT, MPI_BXOR, comm, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Ibcast(mine, n, MPI_INT, root, comm, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Ibarrier(comm, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, comm));
                OK(MPI_Allreduce(mine, sum, n, MPI_INT, MPI_BXOR, comm));
                OK(MPI_Bcast(mine, n, MPI_INT, root, comm));
                OK(MPI_Barrier(comm));
            }
            for (int r = 0; r < size; r++)
                GOT_BLOCK(all, 0, (long)r * n, n, r, 0);
            GOT_BLOCK(mine, 0, 0, n, root, 0);
            for (int i = 0; i < n; i++) {
                int expected = 0;
                for (int r = 0; r < size; r++)
                    expected ^= value(r, 0, i);
                if (!same(__FILE__, __LINE__, sum, 0, i, expected))
                    break;
            }
            free(mine);
            free(all);
            free(sum);
        }
        OK(MPI_Comm_free(&comm));
    }
}

static void a_rank_that_sleeps_in_a_call_is_woken_by_its_message_only(void)
{
    for (int round = 0; round < 5; round++) {
        long got = -1, number = round;
        int last = lt_size - 1;
        if (lt_rank == 0)
            pass(0.1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (lt_rank == 0) {
            pass(0.1);
            for (int to = 1; to <= last; to++)
                OK(MPI_Ssend(&number, 1, MPI_LONG, to, 0, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(&got, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_INT(got, number);
        }
    }
}

static void signals_came(void)
{
    CHECK(alarms > 100);
    CHECK(users > 100);
}

int main(int argc, char **argv)
{
    static const lt_test tests[] = {
        TEST(messages_of_all_lengths_arrive),
        TEST(collectives_on_new_communicators_are_right),
        TEST(a_rank_that_sleeps_in_a_call_is_woken_by_its_message_only),
        TEST(signals_came),
    };
    if (argc < 2) {
        fprintf(stderr, "usage: signals restart|interrupt [period]\n");
        return 2;
    }
    storm(strcmp(argv[1], "restart") == 0 ? SA_RESTART : 0, argc > 2 ? atol(argv[2]) : 100);
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 98;
    long failures = lt_run("signals", tests, sizeof tests / sizeof *tests);
    MPI_Finalize();
    return failures != 0;
}
