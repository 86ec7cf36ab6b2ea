/* The programs of the job fault tests.  usage: scene what [argument]
 *
 * Each function below is one scene. A scene that can end normally prints "rank N done" at its end.
 */
#include <mpi.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;
static const char *argument;

static void say_pid(void)
{
    printf("pid %d %d\n", rank, (int)getpid());
    fflush(stdout);
}

/* Passes `bytes` bytes around the ring three times and checks all of them. */
static void ring(void)
{
    size_t bytes = argument ? strtoull(argument, NULL, 0) : 1 << 20;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    if (out == NULL || in == NULL) {
        fprintf(stderr, "scene: the program itself has no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 3);
        exit(3);
    }
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < bytes; i++)
            out[i] = (unsigned char)(i * 7 + (size_t)rank + (size_t)round);
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, to, 0, in, (int)bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (size_t i = 0; i < bytes; i++) {
            if (in[i] != (unsigned char)(i * 7 + (size_t)from + (size_t)round)) {
                fprintf(stderr, "scene: rank %d: wrong byte %zu of %zu\n", rank, i, bytes);
                MPI_Abort(MPI_COMM_WORLD, 4);
            }
        }
    }
    free(out);
    free(in);
}

/* Says its process number, then works and synchronises for ever. */
static void work_forever(void)
{
    say_pid();
    for (;;) {
        usleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* As above, waiting asleep inside the library. */
static void wait_forever(void)
{
    int value;
    say_pid();
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Each rank has a child of its own that outlives everything unless it is ended. */
static void with_children(void)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    printf("pid %d %d\n", size + rank, (int)child);
    work_forever();
}

/* Rank 1 leaves while the others wait for it. */
static void leave(void)
{
    if (rank == 1)
        exit(argument ? atoi(argument) : 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 2 aborts; rank 0 ends by SIGTERM, which rank 1, that waits for rank 0, does not take. */
static void end_late(void)
{
    int value = 0;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    if (rank == 1) {
        sigprocmask(SIG_BLOCK, &term, NULL);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2)
        MPI_Abort(MPI_COMM_WORLD, 6);
    if (MPI_Recv(&value, 1, MPI_INT, rank == 1 ? 0 : 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        printf("rank %d got an error\n", rank);
        fflush(stdout);
    }
}

static void crash(void)
{
    if (rank == 1)
        *(volatile int *)8 = 1;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A forked child computes and exits; afterwards the parent communicates as before. */
static void fork_and_compute(void)
{
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) {
            volatile double sum = 0;
            for (int i = 0; i < 1000000; i++)
                sum += i;
            if (round == 0)
                _exit(sum > 0 ? 5 : 6);
            exit(sum > 0 ? 5 : 6);
        }
        ring();
        int how = 0;
        waitpid(child, &how, 0);
        if (!WIFEXITED(how) || WEXITSTATUS(how) != 5) {
            fprintf(stderr, "scene: the child ended with status 0x%x\n", how);
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
    }
    ring();
}

/* A forked child that calls MPI gets an error; the parent notices nothing. */
static void fork_and_call(void)
{
    pid_t child = fork();
    if (child == 0) {
        int value = 0;
        int code = MPI_Send(&value, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
        _exit(code == MPI_SUCCESS ? 0 : 7);
    }
    int how = 0, flag = 0;
    waitpid(child, &how, 0);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) {
        fprintf(stderr, "scene: MPI_Send succeeded in the child\n");
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    ring();
    MPI_Iprobe(rank, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (flag) {
        fprintf(stderr, "scene: a message of the child has arrived\n");
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
}

static void talk_forever(void)
{
    for (long i = 0;; i++)
        printf("rank %d says line %ld of very many lines\n", rank, i);
}

/* All ranks receive first. */
static void deadlock(void)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The last rank is not in the barrier. */
static void missing(void)
{
    int value;
    if (rank == size - 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 is done while rank 1 waits for a message from it. */
static void left(void)
{
    int value;
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* No rank hangs in the following four: rank 0 is busy elsewhere for some seconds, the others wait. */
static void sleeper(void)
{
    if (rank == 0)
        sleep(4);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void parent_of_a_slow_child(void)
{
    if (rank == 0 && system("sleep 4") != 0)
        MPI_Abort(MPI_COMM_WORLD, 6);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void computer(void)
{
    double end = MPI_Wtime() + 4;
    while (rank == 0 && MPI_Wtime() < end) {
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* For half of the time after which a rank that polls counts as one that waits. */
static void poller(void)
{
    double end = MPI_Wtime() + 2.5;
    int flag = 0;
    while (rank == 0 && MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Takes more memory than there is, in small steps, while the others wait. */
static void devour(void)
{
    if (rank == 1) {
        for (;;) {
            char *memory = malloc(1 << 20);
            if (memory == NULL)
                exit(9);
            memset(memory, 1, 1 << 20);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * From here on this process gets `more` bytes of address space and no more. Needs one arena (see `main`): a thread that
 * starts reserves 128 MB for its memory and gives half of it back, and a reading between the two is too high.
 */
static void limit_memory(size_t more)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        exit(99);
    fclose(file);
    struct rlimit limit = {pages * 4096 + more, pages * 4096 + more};
    setrlimit(RLIMIT_AS, &limit);
}

/* Ends with a line about the error, which must be one of memory. */
static void expect_no_memory(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    printf("rank %d: %s\n", rank,
           class == MPI_ERR_NO_MEM ? "out of memory"
           : code == MPI_SUCCESS   ? "no error"
                                   : "wrong error");
}

/* There is no memory for the connections that a collective needs. */
static void no_room_for_lanes(void)
{
    int sum = 0;
    limit_memory(100 << 10); /* enough for the C library, too little for one connection */
    if (argument != NULL)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect_no_memory(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

/* Rank 0 sends more than rank 1 can keep before it receives. */
static void flood(void)
{
    static char buffer[8000];
    if (argument != NULL)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
        limit_memory(100 << 20);
        expect_no_memory(MPI_Recv(buffer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        /* Whatever comes afterwards is refused too, and does not wait. */
        expect_no_memory(MPI_Recv(buffer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_no_memory(MPI_Send(buffer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 8);
    }
    for (int i = 0; i < 100000; i++)
        MPI_Send(buffer, sizeof buffer, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
}

/* Memory of this process that is in use. */
static size_t resident(void)
{
    unsigned long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &pages) != 2)
        exit(99);
    fclose(file);
    return pages * 4096;
}

/* Rank 0 sends 160 MB that rank 1 does not ask for before it has computed for a while. */
static void flood_of_a_computer(void)
{
    enum { COUNT = 20000 };
    static char buffer[8000];
    if (rank == 0) {
        for (int i = 0; i < COUNT; i++)
            MPI_Send(buffer, sizeof buffer, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        return;
    }
    size_t before = resident();
    usleep(700 * 1000);
    printf("rank 1 holds %zu MB\n", (resident() - before) >> 20);
    for (int i = 0; i < COUNT; i++)
        MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Passes very large messages; rank `argument` is killed in the middle of one. */
static void killed_in_transfer(void)
{
    size_t bytes = 100 << 20;
    char *buffer = malloc(bytes);
    if (buffer == NULL)
        exit(3);
    memset(buffer, 1, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == atoi(argument) && fork() == 0) {
        usleep(150 * 1000);
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    for (;;) {
        if (rank == 0)
            MPI_Send(buffer, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void nothing(void)
{
}

/* These two system calls fail with EPERM from here on, as in many containers. */
static void deny(int first, int second)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("scene: no system call filter");
        exit(77);
    }
}

static void deny_cross_memory_attach(void)
{
    deny(SYS_process_vm_readv, SYS_process_vm_writev);
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {
    {"ring", ring},
    {"work", work_forever},
    {"wait", wait_forever},
    {"children", with_children},
    {"leave", leave},
    {"end-late", end_late},
    {"crash", crash},
    {"fork", fork_and_compute},
    {"fork-mpi", fork_and_call},
    {"talk", talk_forever},
    {"deadlock", deadlock},
    {"missing", missing},
    {"left", left},
    {"sleeper", sleeper},
    {"slow-child", parent_of_a_slow_child},
    {"computer", computer},
    {"poller", poller},
    {"devour", devour},
    {"nothing", nothing},
    {"denied-ring", ring},
    {"half-denied-ring", ring},
    {"undumpable-ring", ring},
    {"no-barrier-ring", ring},
    {"lanes", no_room_for_lanes},
    {"flood", flood},
    {"transfer", killed_in_transfer},
    {"flood-of-a-computer", flood_of_a_computer},
};

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    argument = argc > 2 ? argv[2] : NULL;
    if (strcmp(what, "denied-ring") == 0)
        deny_cross_memory_attach();
    if (strcmp(what, "no-barrier-ring") == 0)
        deny(SYS_membarrier, SYS_membarrier);
    if (strcmp(what, "undumpable-ring") == 0)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    mallopt(M_ARENA_MAX, 1); /* for limit_memory */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Only one side, and only after the library has looked. */
    if (strcmp(what, "half-denied-ring") == 0 && rank == 1)
        deny_cross_memory_attach();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, what) == 0) {
            scenes[i].play();
            MPI_Finalize();
            printf("rank %d done\n", rank);
            return 0;
        }
    }
    fprintf(stderr, "scene: no such scene: %s\n", what);
    return 99;
}
