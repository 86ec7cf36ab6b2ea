/* Ping-pong between two hosts, with MPI or, compiled with -DPLAIN, with a TCP socket of its own as the limit.
 *
 * A message goes there and back; half of that time is a sample, the mean of a batch. Every batch has patterns of its
 * own, with which both sides compare the last message. Rank 0 prints a JSON object per size, with microseconds:
 * {"bytes": 8, "samples": [...]}.
 *
 * Arguments: for MPI none; `exchange` for messages in both directions at once, or `allreduce` for sums of that many
 * bytes by both ranks, whose whole time is a sample; with a socket `listen PORT` or `connect ADDRESS PORT`. Exit code 1
 * if a byte was wrong. */
#define _GNU_SOURCE
#ifdef PLAIN
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#else
#include <mpi.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 9, MAX_BYTES = 16 << 20 };
static const size_t sizes[] = {8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, MAX_BYTES};
static const double batch_seconds = 0.03;
static int rank;
static bool exchange, allreduce;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef PLAIN
static int wire;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void open_wire(int argc, char **argv)
{
    int yes = 1, listener;
    struct sockaddr_in place = {.sin_family = AF_INET};
    if (argc == 3 && !strcmp(argv[1], "listen")) {
        place.sin_port = htons((uint16_t)atoi(argv[2]));
        listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 1))
            fail("listen");
        wire = accept(listener, NULL, NULL);
        rank = 1;
    } else if (argc == 4 && !strcmp(argv[1], "connect")) {
        place.sin_port = htons((uint16_t)atoi(argv[3]));
        inet_pton(AF_INET, argv[2], &place.sin_addr);
        for (int attempt = 0;; attempt++) {
            wire = socket(AF_INET, SOCK_STREAM, 0);
            if (!connect(wire, (struct sockaddr *)&place, sizeof place))
                break;
            if (attempt == 100)
                fail("connect");
            close(wire);
            usleep(20000);
        }
    } else {
        exit(2);
    }
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Both spin, as waiting ranks do. */
static void send_message(const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = send(wire, from, bytes, MSG_DONTWAIT);
        if (done < 0 && errno != EAGAIN)
            fail("send");
        if (done > 0)
            from += done, bytes -= (size_t)done;
    }
}

static void receive_message(char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = recv(wire, to, bytes, MSG_DONTWAIT);
        if (done == 0 || (done < 0 && errno != EAGAIN))
            fail("recv");
        if (done > 0)
            to += done, bytes -= (size_t)done;
    }
}
#else
static void send_message(const char *from, size_t bytes)
{
    MPI_Send(from, (int)bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
}

static void receive_message(char *to, size_t bytes)
{
    MPI_Recv(to, (int)bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#endif

static void fill(char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)((i * 31 + (i >> 8) * 7 + (i >> 16) * 13 + seed) & 0xff);
}

static char *out, *in;

static void turn(size_t bytes)
{
#ifndef PLAIN
    if (allreduce) {
        MPI_Allreduce(out, in, (int)(bytes / sizeof(uint32_t)), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    if (exchange) {
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, 1 - rank, 1, in, (int)bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        return;
    }
#endif
    if (rank == 0)
        send_message(out, bytes), receive_message(in, bytes);
    else
        receive_message(in, bytes), send_message(out, bytes);
}

/* Seconds of one way, of an exchange or of a reduction, the mean of so many turns. */
static double batch(size_t bytes, long turns)
{
    double start = now();
    for (long i = 0; i < turns; i++)
        turn(bytes);
    return (now() - start) / (double)turns / (exchange || allreduce ? 1 : 2);
}

/* As many turns as take `batch_seconds`; both sides use the same number. */
static long turns_for(size_t bytes)
{
    batch(bytes, 2);
    double once = batch(bytes, bytes <= 64 << 10 ? 100 : 4);
    uint64_t turns = (uint64_t)(batch_seconds / 2 / once) + 2;
    if (rank == 0)
        send_message((char *)&turns, sizeof turns);
    else
        receive_message((char *)&turns, sizeof turns);
    return (long)turns;
}

int main(int argc, char **argv)
{
    int wrong = 0;
#ifdef PLAIN
    open_wire(argc, argv);
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange = argc > 1 && !strcmp(argv[1], "exchange");
    allreduce = argc > 1 && !strcmp(argv[1], "allreduce");
#endif
    out = malloc(MAX_BYTES), in = malloc(MAX_BYTES);
    char *expected = malloc(MAX_BYTES);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = sizes[s];
        long turns = turns_for(bytes);
        if (rank == 0)
            printf("{\"bytes\": %zu, \"samples\": [", bytes);
        for (unsigned b = 0; b < BATCHES; b++) {
            fill(out, bytes, b + (unsigned)rank * 100);
            fill(expected, bytes, b + (unsigned)(1 - rank) * 100);
            for (size_t i = 0; allreduce && i < bytes / sizeof(uint32_t); i++)
                ((uint32_t *)expected)[i] += ((uint32_t *)out)[i];
            memset(in, 0, bytes);
            double seconds = batch(bytes, turns);
            wrong |= memcmp(in, expected, bytes) != 0;
            if (rank == 0)
                printf("%s%.3f", b ? ", " : "", 1e6 * seconds);
        }
        if (rank == 0) {
            printf("]}\n");
            fflush(stdout);
        }
    }
#ifndef PLAIN
    MPI_Finalize();
#endif
    if (wrong)
        fprintf(stderr, "rank %d: a byte was wrong\n", rank);
    return wrong;
}
