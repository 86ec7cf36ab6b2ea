/* What survivors see of a killed rank, with MPI_ERRORS_RETURN.  usage: deaths WHAT FILE
 *
 * Rank 1 is going to be killed. The others begin what WHAT says, which needs rank 1, and must get MPI_ERR_PROC_ABORTED.
 * Then they look that they can still communicate with each other, and that nothing else succeeds with the dead. What
 * they find goes to FILE.RANK, since the launcher, which reads their output, is stopped: "ok" at the end, or what was
 * wrong.
 */
#include <mpi.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM = 1, SMALL = 8, LARGE = 3000000, PIECE = 1000, PROMISED = 500 * PIECE };

static int rank, size;
static FILE *report;
static MPI_Comm survivors, ring, inter; /* inter: the survivors and the victim */
static char *buffer, *other, *third;
static MPI_Win win = MPI_WIN_NULL;
static MPI_File file = MPI_FILE_NULL;
static char path[4096]; /* of the file */
static int others_put;  /* into `other`, which is the window, as long as they do not know of the death */

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(report, format, arguments);
    va_end(arguments);
    fprintf(report, "\nfailed\n");
    fclose(report);
    for (;;)
        pause();
}

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

/* The operation has failed, and the error names the dead. */
static void expect_death(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (class_of(code) != MPI_ERR_PROC_ABORTED)
        fail("%s: class %d instead of MPI_ERR_PROC_ABORTED", what, class_of(code));
    MPI_Error_string(code, text, &length);
    fprintf(report, "%s: %s\n", what, text);
    if (strstr(text, "process 1 ") == NULL && strstr(text, "process of the communicator") == NULL)
        fail("%s: the error does not name process 1: %s", what, text);
}

static int wait_for(MPI_Request *request)
{
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

static int test_for(MPI_Request *request)
{
    int done = 0, code = MPI_SUCCESS;
    while (!done && code == MPI_SUCCESS)
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    return code;
}

static int bytes_of(const char *what)
{
    return strstr(what, "large") != NULL ? LARGE : SMALL;
}

/* The window is `other` of each; the lock of rank 0 is the victim's. */
static int play_on_window(const char *what)
{
    MPI_Group all, dead;
    int victim = VICTIM, code = MPI_SUCCESS;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &victim, &dead);
    if (strcmp(what, "win-fence") == 0)
        return MPI_Win_fence(0, win);
    if (strcmp(what, "win-lock") == 0)
        return MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (strcmp(what, "win-start") == 0)
        return MPI_Win_start(dead, 0, win);
    if (strcmp(what, "win-wait") == 0) {
        MPI_Win_post(dead, 0, win);
        return MPI_Win_wait(win);
    }
    if (strcmp(what, "win-get") == 0 || strcmp(what, "win-rget") == 0) {
        /* The partner lives; its answers may be on their way when the operation fails. */
        MPI_Request request;
        int partner = rank == 0 ? 2 : 0;
        code = MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, win);
        while (code == MPI_SUCCESS && strcmp(what, "win-get") == 0) {
            code = MPI_Get(buffer, LARGE, MPI_BYTE, partner, 0, LARGE, MPI_BYTE, win);
            if (code == MPI_SUCCESS)
                code = MPI_Win_flush(partner, win);
        }
        while (code == MPI_SUCCESS) {
            code = MPI_Rget(buffer, LARGE, MPI_BYTE, partner, 0, LARGE, MPI_BYTE, win, &request);
            if (code == MPI_SUCCESS)
                code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        return code;
    }
    if (strcmp(what, "win-flush") != 0)
        fail("no such scene: %s", what);
    code = MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, 0, win);
    while (code == MPI_SUCCESS) {
        code = MPI_Accumulate(buffer, 1000, MPI_INT, VICTIM, 0, 1000, MPI_INT, MPI_SUM, win);
        if (code == MPI_SUCCESS)
            code = MPI_Win_flush(VICTIM, win);
    }
    return code;
}

/* Epochs of all kinds, in turn, for ever. */
static int storm_of_epochs(void)
{
    int code = MPI_SUCCESS, next = (rank + 1) % size;
    others_put = 1;
    for (int step = 0; code == MPI_SUCCESS; step++) {
        int n = step % 7 == 6 ? 200000 : 100;
        switch (step % 3) {
        case 0:
            code = MPI_Win_fence(0, win);
            if (code == MPI_SUCCESS)
                code = MPI_Put(buffer, n, MPI_BYTE, next, 0, n, MPI_BYTE, win);
            if (code == MPI_SUCCESS)
                code = MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
            break;
        case 1:
            code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, step / 3 % size, 0, win);
            if (code == MPI_SUCCESS)
                code = MPI_Get(buffer, n, MPI_BYTE, step / 3 % size, 0, n, MPI_BYTE, win);
            if (code == MPI_SUCCESS)
                code = MPI_Win_unlock(step / 3 % size, win);
            break;
        default:
            code = MPI_Win_lock_all(0, win);
            if (code == MPI_SUCCESS)
                code = MPI_Accumulate(buffer, n, MPI_INT, next, 0, n, MPI_INT, MPI_SUM, win);
            if (code == MPI_SUCCESS)
                code = MPI_Win_flush(next, win);
            if (code == MPI_SUCCESS)
                code = MPI_Win_unlock_all(win);
        }
    }
    return code;
}

/* What is in the file before any rank dies, and is on the disk: pieces of the ranks in turns. */
static void begin_file(void)
{
    MPI_Datatype piece, turns;
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * size, &turns);
    MPI_Type_commit(&turns);
    memset(buffer, 'A' + rank, LARGE);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS ||
        MPI_File_set_view(file, (MPI_Offset)PIECE * rank, MPI_BYTE, turns, "native", MPI_INFO_NULL) != MPI_SUCCESS ||
        MPI_File_write_all(file, buffer, PROMISED, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        MPI_File_sync(file) != MPI_SUCCESS)
        fail("the file cannot be written");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&turns);
    MPI_Type_free(&piece);
}

/* Behind what is on the disk. */
static int play_on_file(const char *what)
{
    MPI_File another;
    int code = MPI_SUCCESS;
    if (strcmp(what, "file-open") == 0)
        return MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &another);
    if (strcmp(what, "file-write") == 0)
        return MPI_File_write_at_all(file, PROMISED, buffer, LARGE, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(what, "file-read") == 0)
        return MPI_File_read_at_all(file, 0, other, PROMISED, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(what, "file-ordered") == 0)
        return MPI_File_write_ordered(file, buffer, SMALL, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(what, "file-size") == 0)
        return MPI_File_set_size(file, (MPI_Offset)LARGE * size);
    if (strcmp(what, "file-sync") == 0)
        return MPI_File_sync(file);
    if (strcmp(what, "file-storm") != 0)
        fail("no such scene: %s", what);
    for (int bytes = 1; code == MPI_SUCCESS; bytes = bytes * 5 % LARGE) {
        code = MPI_File_write_at_all(file, PROMISED + bytes, buffer, LARGE - bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_File_read_at_all(file, bytes, other, LARGE - bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    return code;
}

/* Nothing that was on the disk is lost. */
static void look_at_file(void)
{
    FILE *there = fopen(path, "r");
    if (there == NULL || fread(other, 1, (size_t)PROMISED * (size_t)size, there) != (size_t)PROMISED * (size_t)size)
        fail("the file is too short");
    fclose(there);
    for (int i = 0; i < PROMISED * size; i++)
        if (other[i] != 'A' + i / PIECE % size)
            fail("byte %d of the file is lost", i);
}

/* Begins and ends one operation. */
static int play(const char *what)
{
    int n = bytes_of(what), flag = 0, code = MPI_SUCCESS;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Message message;
    int (*end)(MPI_Request *) = strstr(what, "test") != NULL ? test_for : wait_for;

    if (strncmp(what, "win-", 4) == 0)
        return play_on_window(what);
    if (strncmp(what, "file-", 5) == 0)
        return play_on_file(what);
    if (strncmp(what, "recv-any", 8) == 0)
        return MPI_Recv(buffer, n, MPI_BYTE, MPI_ANY_SOURCE, 7, all, MPI_STATUS_IGNORE);
    if (strncmp(what, "recv", 4) == 0)
        return MPI_Recv(buffer, n, MPI_BYTE, VICTIM, 7, all, MPI_STATUS_IGNORE);
    if (strncmp(what, "send", 4) == 0)
        return MPI_Send(buffer, LARGE, MPI_BYTE, VICTIM, 7, all);
    if (strncmp(what, "ssend", 5) == 0)
        return MPI_Ssend(buffer, n, MPI_BYTE, VICTIM, 7, all);
    if (strncmp(what, "flood", 5) == 0) {
        while (code == MPI_SUCCESS)
            code = MPI_Send(buffer, 2000, MPI_BYTE, VICTIM, 7, all);
        return code;
    }
    if (strncmp(what, "probe", 5) == 0)
        return MPI_Probe(VICTIM, 7, all, MPI_STATUS_IGNORE);
    if (strncmp(what, "mprobe", 6) == 0)
        return MPI_Mprobe(VICTIM, 7, all, &message, MPI_STATUS_IGNORE);
    if (strncmp(what, "iprobe", 6) == 0) {
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Iprobe(VICTIM, 7, all, &flag, MPI_STATUS_IGNORE);
        return code;
    }
    if (strncmp(what, "improbe", 7) == 0) {
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Improbe(VICTIM, 7, all, &flag, &message, MPI_STATUS_IGNORE);
        return code;
    }
    if (strncmp(what, "irecv", 5) == 0) {
        MPI_Irecv(buffer, n, MPI_BYTE, VICTIM, 7, all, &requests[0]);
        return end(&requests[0]);
    }
    if (strncmp(what, "isend", 5) == 0) {
        MPI_Isend(buffer, LARGE, MPI_BYTE, VICTIM, 7, all, &requests[0]);
        return end(&requests[0]);
    }
    if (strncmp(what, "waitany", 7) == 0) {
        /* The first never ends, the second fails. */
        int index;
        MPI_Irecv(other, n, MPI_BYTE, rank, 8, all, &requests[0]);
        MPI_Irecv(buffer, n, MPI_BYTE, VICTIM, 7, all, &requests[1]);
        code = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        if (index != 1)
            fail("MPI_Waitany: request %d has ended", index);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return code;
    }
    if (strncmp(what, "barrier", 7) == 0)
        return MPI_Barrier(all);
    if (strncmp(what, "bcast", 5) == 0)
        return MPI_Bcast(buffer, n, MPI_BYTE, VICTIM, all);
    if (strncmp(what, "reduce", 6) == 0) {
        /* Only the root needs the dead; the others may have done their part. */
        code = MPI_Reduce(buffer, other, n, MPI_BYTE, MPI_BXOR, 0, all);
        return code == MPI_SUCCESS && rank != 0 ? MPI_Barrier(all) : code;
    }
    if (strncmp(what, "gather", 6) == 0) {
        code = MPI_Gather(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, 0, all);
        return code == MPI_SUCCESS && rank != 0 ? MPI_Barrier(all) : code;
    }
    if (strncmp(what, "scatter", 7) == 0)
        return MPI_Scatter(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, VICTIM, all);
    if (strncmp(what, "allreduce", 9) == 0)
        return MPI_Allreduce(buffer, other, n, MPI_BYTE, MPI_BXOR, all);
    if (strncmp(what, "allgather", 9) == 0)
        return MPI_Allgather(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, all);
    if (strncmp(what, "alltoall", 8) == 0)
        return MPI_Alltoall(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, all);
    if (strncmp(what, "scan", 4) == 0) {
        code = MPI_Scan(buffer, other, n, MPI_BYTE, MPI_BXOR, all);
        return code == MPI_SUCCESS && rank == 0 ? MPI_Barrier(all) : code;
    }
    if (strncmp(what, "neighbour", 9) == 0)
        return MPI_Neighbor_alltoall(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, ring);
    if (strncmp(what, "inter-recv", 10) == 0)
        return MPI_Recv(buffer, n, MPI_BYTE, 0, 7, inter, MPI_STATUS_IGNORE);
    if (strncmp(what, "inter-any", 9) == 0)
        return MPI_Recv(buffer, n, MPI_BYTE, MPI_ANY_SOURCE, 7, inter, MPI_STATUS_IGNORE);
    if (strncmp(what, "inter-barrier", 13) == 0)
        return MPI_Barrier(inter);
    if (strncmp(what, "inter-bcast", 11) == 0)
        return MPI_Bcast(buffer, n, MPI_BYTE, 0, inter);
    if (strncmp(what, "inter-allreduce", 15) == 0)
        return MPI_Allreduce(buffer, other, n, MPI_BYTE, MPI_BXOR, inter);
    if (strncmp(what, "dup", 3) == 0)
        return MPI_Comm_split(all, 0, rank, &(MPI_Comm){MPI_COMM_NULL});
    if (strncmp(what, "ibarrier", 8) == 0)
        MPI_Ibarrier(all, &requests[0]);
    else if (strncmp(what, "ibcast", 6) == 0)
        MPI_Ibcast(buffer, n, MPI_BYTE, VICTIM, all, &requests[0]);
    else if (strncmp(what, "ilend", 5) == 0)
        MPI_Iallgather(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, all, &requests[0]);
    else if (strncmp(what, "iallreduce", 10) == 0)
        MPI_Iallreduce(buffer, other, n, MPI_BYTE, MPI_BXOR, all, &requests[0]);
    else if (strncmp(what, "ialltoall", 9) == 0)
        MPI_Ialltoall(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, all, &requests[0]);
    else if (strncmp(what, "pallreduce", 10) == 0) {
        MPI_Allreduce_init(buffer, other, n, MPI_BYTE, MPI_BXOR, all, MPI_INFO_NULL, &requests[0]);
        MPI_Start(&requests[0]);
    } else {
        fail("no such scene: %s", what);
    }
    return end(&requests[0]);
}

/* Collectives in turn, for ever: a killed rank is killed in the middle of something. */
static int storm(void)
{
    int code = MPI_SUCCESS;
    unsigned step = 0;
    while (code == MPI_SUCCESS) {
        static const int bytes[] = {8, 3000, 70000, 600000, 2400000};
        int n = bytes[step / 7 % 5], root = (int)(step % (unsigned)size);
        MPI_Request request;
        switch (step++ % 7) {
        case 0: code = MPI_Bcast(buffer, n, MPI_BYTE, root, MPI_COMM_WORLD); break;
        case 1: code = MPI_Allreduce(buffer, other, n, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD); break;
        case 2: code = MPI_Alltoall(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, MPI_COMM_WORLD); break;
        case 3: code = MPI_Reduce(buffer, other, n, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD); break;
        case 4: code = MPI_Gather(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, root, MPI_COMM_WORLD); break;
        case 5: code = MPI_Allgather(buffer, n / 8, MPI_BYTE, other, n / 8, MPI_BYTE, MPI_COMM_WORLD); break;
        default:
            MPI_Iallreduce(buffer, other, n, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &request);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    return code;
}

/* The same with long reductions in the background: any rank may be combining for all when a different one is killed. */
static int storm_of_reductions(void)
{
    enum { LENGTHS = 3 };
    static const int bytes[LENGTHS] = {70000, 600000, 2400000};
    MPI_Request persistent[LENGTHS];
    int code = MPI_SUCCESS;
    for (int i = 0; i < LENGTHS; i++)
        MPI_Allreduce_init(buffer, other, bytes[i], MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent[i]);
    for (unsigned step = 0; code == MPI_SUCCESS; step++) {
        int i = (int)(step / 4 % LENGTHS), root = (int)(step % (unsigned)size);
        MPI_Request requests[2];
        switch (step % 4) {
        case 0:
            MPI_Iallreduce(buffer, other, bytes[i], MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &requests[0]);
            code = wait_for(&requests[0]);
            break;
        case 1:
            MPI_Ireduce(buffer, other, bytes[i], MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD, &requests[0]);
            code = test_for(&requests[0]);
            break;
        case 2:
            MPI_Start(&persistent[i]);
            code = wait_for(&persistent[i]);
            break;
        default:
            /* Two at a time, the later one awaited first. */
            MPI_Iallreduce(buffer, other, bytes[i], MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &requests[0]);
            MPI_Iallreduce(MPI_IN_PLACE, third, bytes[i], MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &requests[1]);
            code = wait_for(&requests[1]);
            int first = wait_for(&requests[0]);
            if (code == MPI_SUCCESS)
                code = first;
        }
    }
    return code;
}

/* All that has been used before, so that connections and shared memory are there. */
static void warm_up(void)
{
    MPI_Request request;
    int sum, to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &sum, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(buffer, other, LARGE, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The program's memory is its own again after an error: no rank writes there. */
static void look_at_buffers(void)
{
    memset(buffer, 'a', LARGE);
    memset(other, 'b', LARGE);
    memset(third, 'c', LARGE);
    usleep(100000);
    for (int i = 0; i < LARGE; i++)
        if (buffer[i] != 'a' || (other[i] != 'b' && !others_put) || third[i] != 'c')
            fail("byte %d was written after the operation had failed", i);
}

static void survivors_go_on(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, sum = 0, all = 0, any = 0;
    next += next == VICTIM;
    before -= before == VICTIM;
    for (int i = 0; i < size; i++) {
        all += i == VICTIM ? 0 : i;
        any |= i == VICTIM ? 0 : i;
    }
    if (others_put && MPI_Barrier(survivors) != MPI_SUCCESS)
        fail("a barrier of survivors failed");
    memset(buffer, rank, LARGE);
    if (MPI_Sendrecv(buffer, LARGE, MPI_BYTE, next, 1, other, LARGE, MPI_BYTE, before, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
        fail("a message between survivors failed");
    if (other[0] != (char)before || other[LARGE - 1] != (char)before)
        fail("a message between survivors has wrong bytes");
    for (int i = 0; i < 100; i++)
        if (MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, survivors) != MPI_SUCCESS || sum != all)
            fail("a reduction among survivors failed");
    if (MPI_Allreduce(buffer, other, LARGE, MPI_BYTE, MPI_BOR, survivors) != MPI_SUCCESS || other[LARGE / 2] != any)
        fail("a large reduction among survivors failed");
}

/* Rank 1 finishes in good order and exits; a wildcard receive of the others, which go on, does not end by that. */
static int finish(void)
{
    int value = -1;
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 2) {
        usleep(300000);
        value = 2;
        MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    if (rank != VICTIM && value != 2)
        MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    printf("rank %d done\n", rank);
    return 0;
}

int main(int argc, char **argv)
{
    char name[4096];
    int code;
    if (argc < 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, rank == VICTIM, rank, &survivors);
    if (strncmp(argv[1], "neighbour", 9) == 0)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &ring);
    if (strncmp(argv[1], "inter", 5) == 0)
        MPI_Intercomm_create(survivors, 0, MPI_COMM_WORLD, rank == VICTIM ? 0 : VICTIM, 0, &inter);
    if (strcmp(argv[1], "finish") == 0)
        return finish();
    buffer = calloc(1, LARGE);
    other = calloc(1, LARGE);
    third = calloc(1, LARGE);
    if (strstr(argv[1], "cold") == NULL)
        warm_up();
    if (strncmp(argv[1], "win-", 4) == 0) {
        MPI_Win_create(other, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        if (rank == VICTIM && strcmp(argv[1], "win-lock") == 0)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    report = fopen(name, "w");
    if (buffer == NULL || other == NULL || third == NULL || report == NULL)
        return 3;
    if (strncmp(argv[1], "file-", 5) == 0) {
        snprintf(path, sizeof path, "%s.data", argv[2]);
        begin_file();
    }
    printf("pid %d %d\n", rank, (int)getpid());
    fflush(stdout);
    if (strcmp(argv[1], "storm") == 0) {
        code = storm();
    } else if (strcmp(argv[1], "storm-reductions") == 0) {
        code = storm_of_reductions();
    } else if (strcmp(argv[1], "win-storm") == 0) {
        code = storm_of_epochs();
    } else if (strcmp(argv[1], "file-storm") == 0) {
        code = play_on_file(argv[1]);
    } else if (strcmp(argv[1], "abort") == 0 && rank != VICTIM) {
        if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 9);
        return 0;
    } else if (rank == VICTIM) {
        for (;;)
            pause();
    } else {
        code = play(argv[1]);
    }
    expect_death(argv[1], code);
    look_at_buffers();
    survivors_go_on();
    expect_death("MPI_Send", MPI_Send(buffer, SMALL, MPI_BYTE, VICTIM, 2, MPI_COMM_WORLD));
    expect_death("MPI_Recv", MPI_Recv(buffer, SMALL, MPI_BYTE, VICTIM, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_death("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD));
    if (win != MPI_WIN_NULL && strcmp(argv[1], "win-fence") == 0) {
        expect_death("MPI_Win_free", MPI_Win_free(&win));
        if (win != MPI_WIN_NULL)
            fail("the window is still there");
    }
    if (file != MPI_FILE_NULL) {
        look_at_file();
        expect_death("MPI_File_write_at_all",
                     MPI_File_write_at_all(file, 0, buffer, SMALL, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    fprintf(report, "ok\n");
    fclose(report);
    for (;;)
        pause();
}
