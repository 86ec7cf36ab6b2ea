/* Shared memory of communicators and persistent collectives goes back when they are freed: MPI-5 sections 6.13
 * and 7.4.3. */
#include "limosa_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static int out[LARGE], in[LARGE];

/* Bytes of memory that the ranks share, as the kernel counts them in the job's memory files. */
static long shared_bytes(void)
{
    long blocks = 0, files = 0;
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char target[256];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        struct stat facts;
        if (length < 0)
            continue;
        target[length] = '\0';
        if (strstr(target, "/memfd:limosa") && fstat(atoi(entry->d_name), &facts) == 0) {
            files++;
            blocks += facts.st_blocks;
        }
    }
    closedir(directory);
    CHECK(files > 0);
    return blocks * 512 / (files > 0 ? files : 1);
}

/* After all ranks have come here, and none goes on before all have looked. */
static long shared_bytes_now(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long bytes = shared_bytes();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return bytes;
}

static void wait_all(int n, MPI_Request *requests)
{
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

/* Most elements of a reduction in the background that needs no message: messages take memory that stays. */
static const int background[] = {1, 2000, 16000};

/* Uses whatever a communicator may share, for collectives in the calling thread and in the background. */
static void use(MPI_Comm comm)
{
    MPI_Request requests[2];
    for (int count = 1; count <= LARGE; count *= 4) {
        OK(MPI_Bcast(out, count, MPI_INT, 0, comm));
        OK(MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm));
    }
    for (int c = 0; c < 3; c++) {
        OK(MPI_Iallreduce(out, in, background[c], MPI_INT, MPI_SUM, comm, &requests[0]));
        OK(MPI_Ibarrier(comm, &requests[1]));
        wait_all(2, requests);
    }
}

enum { ROUNDS = 20 };

/* A leak grows in every round. How much memory the messages of a round touch depends on when the ranks run, and that
 * memory stays; so the check is that one round of several takes no more than there was before it. */
static void check_no_leak(void (*round)(void), int line)
{
    long before = 0, after = 0;
    int grew = 1;
    lt_count_check();
    for (int i = 0; i < ROUNDS && grew; i++) {
        before = shared_bytes_now();
        round();
        after = shared_bytes_now();
        /* Each host has memory of its own. */
        grew = after > before;
        OK(MPI_Allreduce(MPI_IN_PLACE, &grew, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    if (grew)
        lt_fail(__FILE__, line, "shared memory grew in each of %d rounds: the last from %ld to %ld bytes", ROUNDS,
                before, after);
}

#define CHECK_NO_LEAK(round) check_no_leak(round, __LINE__)

/* What is made once, at the first use of something, is not counted. */
static void first_uses(void)
{
    MPI_Comm comm;
    use(MPI_COMM_WORLD);
    OK(MPI_Sendrecv(out, 1, MPI_INT, (lt_rank + 1) % lt_size, 0, in, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    use(comm);
    OK(MPI_Comm_free(&comm));
}

static void use_a_duplicate(void)
{
    MPI_Comm comm;
    long before = shared_bytes_now();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    use(comm);
    long meanwhile = shared_bytes_now();
    CHECK(lt_size == 1 || !lt_one_host() || meanwhile > before);
    OK(MPI_Comm_free(&comm));
}

static void one_communicator(void)
{
    CHECK_NO_LEAK(use_a_duplicate);
}

static void use_a_hundred(void)
{
    for (int i = 0; i < 100; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 ? lt_rank % 2 : 0, lt_rank, &comm));
        OK(MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, comm));
        if (i % 10 == 0)
            use(comm);
        OK(MPI_Comm_free(&comm));
    }
}

static void many_communicators(void)
{
    CHECK_NO_LEAK(use_a_hundred);
}

/* The receive and the collective go on after the communicator was freed; with them goes what it shared. */
static void free_under_way(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    int next = (lt_rank + 1) % lt_size, got = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    use(comm);
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &requests[0]));
    OK(MPI_Iallreduce(out, in, 2000, MPI_INT, MPI_SUM, comm, &requests[1]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&lt_rank, 1, MPI_INT, next, 5, comm));
    OK(MPI_Comm_free(&comm));
    wait_all(2, requests);
    CHECK_INT(got, (lt_rank + lt_size - 1) % lt_size);
}

static void freed_under_way(void)
{
    CHECK_NO_LEAK(free_under_way);
}

static MPI_Request open_receives[ROUNDS];
static int open_count, never_received;

static void leave_a_receive_open(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    use(comm);
    OK(MPI_Irecv(&never_received, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &open_receives[open_count++]));
    OK(MPI_Comm_free(&comm));
}

static void receive_left_open(void)
{
    CHECK_NO_LEAK(leave_a_receive_open);
    for (int i = 0; i < open_count; i++) {
        OK(MPI_Cancel(&open_receives[i]));
        OK(MPI_Wait(&open_receives[i], MPI_STATUS_IGNORE));
    }
}

static MPI_Comm kept;
static int elements;

static void use_persistent(void)
{
    MPI_Request requests[3];
    OK(MPI_Allreduce_init(out, in, elements, MPI_INT, MPI_SUM, kept, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Barrier_init(kept, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Bcast_init(out, elements, MPI_INT, 0, kept, MPI_INFO_NULL, &requests[2]));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Startall(3, requests));
        wait_all(3, requests);
    }
    for (int i = 0; i < 3; i++)
        OK(MPI_Request_free(&requests[i]));
}

static void persistent(void)
{
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &kept));
    use(kept);
    for (int c = 0; c < 3; c++) {
        elements = background[c];
        CHECK_NO_LEAK(use_persistent);
    }
    OK(MPI_Comm_free(&kept));
}

LT_MAIN("comm_memory", TEST(first_uses), TEST(one_communicator), TEST(many_communicators), TEST(freed_under_way),
        TEST(receive_left_open), TEST(persistent))
