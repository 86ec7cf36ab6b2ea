/* Correct programs: messages between two ranks (MPI-5 chapter 3). Nothing may be reported about them. */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static void ping_pong(void)
{
    for (int i = 0; i < 1000; i++) {
        int value = i;
        if (rank == i % 2)
            MPI_Send(&value, 1, MPI_INT, 1 - rank, i, WORLD);
        else
            MPI_Recv(&value, 1, MPI_INT, 1 - rank, i, WORLD, ANY), EXPECT(value, i);
    }
}

static void long_computation_before_a_receive(void)
{
    int value = rank;
    if (rank == 0) {
        compute(5);
        MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, ANY);
        MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Ssend(&value, 1, MPI_INT, 0, 0, WORLD);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, ANY);
    }
    EXPECT(value, 1);
}

static void long_sleep_before_a_send(void)
{
    int value = 3;
    if (rank == 0) {
        nap(5);
        for (int to = 1; to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 0, WORLD);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, ANY);
    }
}

static void iprobe_loop(void)
{
    int flag = 0, value = 0;
    if (rank == 0) {
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, ANY);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, WORLD, ANY);
        EXPECT(value, 9);
    } else {
        nap(4);
        value = 9;
        MPI_Send(&value, 1, MPI_INT, 0, 4, WORLD);
    }
}

static void iprobe_loop_that_sleeps(void)
{
    int flag = 0, value = 0;
    if (rank == 0) {
        for (; !flag; usleep(10000))
            MPI_Iprobe(1, 4, WORLD, &flag, ANY);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, WORLD, ANY);
    } else {
        compute(4);
        MPI_Send(&value, 1, MPI_INT, 0, 4, WORLD);
    }
}

static void large_messages(void)
{
    size_t n = 40 << 20;
    char *out = zeros(n), *in = zeros(n);
    memset(out, 'a' + rank, n);
    MPI_Sendrecv(out, (int)n, MPI_CHAR, 1 - rank, 0, in, (int)n, MPI_CHAR, 1 - rank, 0, WORLD, ANY);
    EXPECT(in[0], 'b' - rank);
    EXPECT(in[n - 1], 'b' - rank);
    free(out);
    free(in);
}

static void wildcards(void)
{
    int value, sum = 0;
    MPI_Status status;
    if (rank > 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, rank + 10, WORLD);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
        EXPECT(value, status.MPI_SOURCE);
        EXPECT(value + 10, status.MPI_TAG);
        sum += value;
    }
    EXPECT(sum, size * (size - 1) / 2);
}

static void master_and_workers(void)
{
    enum { TASKS = 40, WORK, STOP };
    int task = 0, done = 0;
    MPI_Status status;
    if (rank == 0) {
        for (int i = 1; i < size; i++, task++)
            MPI_Send(&task, 1, MPI_INT, i, WORK, WORLD);
        for (int i = 1; i < size;) {
            MPI_Recv(&done, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
            int stop = task >= TASKS;
            MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, stop ? STOP : WORK, WORLD);
            if (stop)
                i++;
            else
                task++;
        }
    } else {
        for (;;) {
            MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, WORLD, &status);
            if (status.MPI_TAG == STOP)
                break;
            usleep(task % 3 * 40000);
            MPI_Send(&task, 1, MPI_INT, 0, 0, WORLD);
        }
    }
}

static void workers_idle_for_long(void)
{
    int task = 1;
    if (rank == 0) {
        nap(1.5);
        MPI_Send(&task, 1, MPI_INT, 1, 0, WORLD);
        MPI_Recv(&task, 1, MPI_INT, 1, 0, WORLD, ANY);
        for (int i = 2; i < size; i++)
            MPI_Send(&task, 1, MPI_INT, i, 0, WORLD);
    } else if (rank == 1) {
        MPI_Recv(&task, 1, MPI_INT, 0, 0, WORLD, ANY);
        compute(3);
        MPI_Send(&task, 1, MPI_INT, 0, 0, WORLD);
    } else {
        MPI_Recv(&task, 1, MPI_INT, 0, 0, WORLD, ANY);
    }
}

static void chain_of_naps(void)
{
    int token = 0;
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, WORLD, ANY);
    nap(1.5);
    token++;
    if (rank + 1 < size)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, WORLD);
    else
        EXPECT(token, size);
}

static void many_unexpected_messages(void)
{
    int value;
    for (int i = 0; i < 20000; i++)
        if (rank == 0)
            MPI_Send(&i, 1, MPI_INT, 1, i % 1000, WORLD);
    MPI_Barrier(WORLD);
    for (int tag = 999; rank == 1 && tag >= 0; tag--)
        for (int i = tag; i < 20000; i += 1000)
            MPI_Recv(&value, 1, MPI_INT, 0, tag, WORLD, ANY), EXPECT(value, i);
}

static void messages_to_self(void)
{
    int in = 0;
    MPI_Send(&size, 1, MPI_INT, rank, 0, WORLD);
    MPI_Recv(&in, 1, MPI_INT, rank, 0, WORLD, ANY);
    EXPECT(in, size);
}

static void no_process(void)
{
    int in = 5;
    MPI_Status status;
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, &status);
    EXPECT(in, 5);
    EXPECT(status.MPI_SOURCE, MPI_PROC_NULL);
}

static void no_process_without_datatype(void)
{
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, WORLD);
    MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, WORLD, ANY);
}

static void empty_messages(void)
{
    MPI_Sendrecv(NULL, 0, MPI_INT, 1 - rank, 0, NULL, 0, MPI_INT, 1 - rank, 0, WORLD, ANY);
}

static void shorter_than_the_buffer(void)
{
    int in[10], n;
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(&rank, 1, MPI_INT, 1, 0, WORLD);
    } else {
        MPI_Recv(in, 10, MPI_INT, 0, 0, WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &n);
        EXPECT(n, 1);
    }
}

static void every_mode_of_sending(void)
{
    int value = 1, in;
    static char buffer[10000];
    void *old;
    int n;
    MPI_Request ready;
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 1)
        MPI_Irecv(&in, 1, MPI_INT, 0, 9, WORLD, &ready);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Bsend(&value, 1, MPI_INT, 1, 0, WORLD);
        MPI_Ssend(&value, 1, MPI_INT, 1, 1, WORLD);
        MPI_Rsend(&value, 1, MPI_INT, 1, 9, WORLD);
    } else {
        MPI_Recv(&in, 1, MPI_INT, 0, 1, WORLD, ANY);
        MPI_Recv(&in, 1, MPI_INT, 0, 0, WORLD, ANY);
        MPI_Wait(&ready, ANY);
    }
    MPI_Buffer_detach(&old, &n);
}

static void matched_probes(void)
{
    int in = 0;
    MPI_Message message;
    MPI_Status status;
    if (rank == 0) {
        nap(2.5);
        MPI_Send(&size, 1, MPI_INT, 1, 8, WORLD);
    } else {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &message, &status);
        EXPECT(status.MPI_TAG, 8);
        MPI_Mrecv(&in, 1, MPI_INT, &message, ANY);
        EXPECT(in, size);
    }
}

static void adjacent_buffers(void)
{
    int x[8] = {rank, rank, rank, rank, -1, -1, -1, -1};
    MPI_Sendrecv(x, 4, MPI_INT, 1 - rank, 0, x + 4, 4, MPI_INT, 1 - rank, 0, WORLD, ANY);
    EXPECT(x[7], 1 - rank);
}

static void interleaved_vectors(void)
{
    /* The buffers' ranges overlap, the elements do not: even places are sent, odd ones received. */
    int x[8] = {rank, -1, rank, -1, rank, -1, rank, -1};
    MPI_Datatype every_second;
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Sendrecv(x, 1, every_second, 1 - rank, 0, x + 1, 1, every_second, 1 - rank, 0, WORLD, ANY);
    EXPECT(x[7], 1 - rank);
    EXPECT(x[6], rank);
    MPI_Type_free(&every_second);
}

CASES(MPI_THREAD_SINGLE, CASE(ping_pong), CASE(long_computation_before_a_receive), CASE(long_sleep_before_a_send),
      CASE(iprobe_loop), CASE(iprobe_loop_that_sleeps), CASE(large_messages), CASE(wildcards), CASE(master_and_workers),
      CASE(workers_idle_for_long), CASE(chain_of_naps), CASE(many_unexpected_messages), CASE(messages_to_self),
      CASE(no_process), CASE(no_process_without_datatype), CASE(empty_messages), CASE(shorter_than_the_buffer),
      CASE(every_mode_of_sending), CASE(matched_probes), CASE(adjacent_buffers), CASE(interleaved_vectors))
