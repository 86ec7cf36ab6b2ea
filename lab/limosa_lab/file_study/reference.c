/* Messages by files as plainly as they can be had: a message file, then an empty lock file; the receiver looks for the
 * lock at intervals, reads the message and deletes both. Two processes send each other a message in turns.
 *
 * usage: reference FOLDER BYTES TRIPS INTERVAL_US [PAUSE_US]
 * prints the time of half a round trip in seconds, trip by trip; the partner waits so long before each of them
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *folder;
static char *bytes;
static size_t length;
static unsigned interval;

static void check(int is_well, const char *what)
{
    if (is_well)
        return;
    perror(what);
    exit(1);
}

static void name(char *path, int to, long number, const char *kind)
{
    snprintf(path, 4096, "%s/%d-%ld.%s", folder, to, number, kind);
}

static void transfer(int file, size_t count, int is_write)
{
    for (size_t done = 0; done < count;) {
        ssize_t part = is_write ? write(file, bytes + done, count - done) : read(file, bytes + done, count - done);
        check(part > 0, "transfer");
        done += (size_t)part;
    }
}

static void send_to(int to, long number)
{
    char path[4096];
    name(path, to, number, "msg");
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(file >= 0, path);
    transfer(file, length, 1);
    close(file);
    name(path, to, number, "lock");
    file = open(path, O_WRONLY | O_CREAT, 0600);
    check(file >= 0, path);
    close(file);
}

static void receive(int me, long number)
{
    char path[4096], lock[4096];
    name(lock, me, number, "lock");
    while (access(lock, F_OK) != 0)
        usleep(interval);
    name(path, me, number, "msg");
    int file = open(path, O_RDONLY);
    check(file >= 0, path);
    transfer(file, length, 0);
    close(file);
    unlink(path);
    unlink(lock);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        return 2;
    folder = argv[1];
    length = strtoul(argv[2], NULL, 10);
    long trips = strtol(argv[3], NULL, 10);
    interval = (unsigned)strtoul(argv[4], NULL, 10);
    unsigned pause = argc == 6 ? (unsigned)strtoul(argv[5], NULL, 10) : 0;
    bytes = calloc(1, length + 1);
    pid_t other = fork();
    check(bytes != NULL && other >= 0, "start");
    for (long i = 0; i < trips; i++) {
        if (other == 0) {
            receive(1, i);
            if (bytes[0] != (char)i || bytes[length - 1] != (char)i)
                exit(3);
            send_to(0, i);
        } else {
            memset(bytes, (char)i, length);
            usleep(pause);
            double begin = now();
            send_to(1, i);
            receive(0, i);
            printf("%.9f\n", (now() - begin) / 2);
            if (bytes[length - 1] != (char)i)
                return 3;
        }
    }
    if (other == 0)
        exit(0);
    int status;
    waitpid(other, &status, 0);
    return status != 0;
}
