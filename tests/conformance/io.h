/* What the programs for files share: a temporary folder, plain access to what lies in it, and random numbers.
 *
 * The folder is one of `LT_FOLDER` (the runner gives its own, which it removes) or of /tmp. It is made before the first
 * test and removed after the last one. Rank 0 looks at files by the functions of the system, after a barrier: what a
 * closed or synchronised file has is there for all ranks.
 */
#ifndef LIMOSA_IO_H
#define LIMOSA_IO_H

#include "limosa_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
#define NO_STATUS MPI_STATUS_IGNORE
enum { NEW = MPI_MODE_CREATE | MPI_MODE_RDWR };

static char io_folder[300];

/* The path of a file in the folder. The four latest results are valid. */
static LT_UNUSED const char *io_path(const char *name)
{
    static char paths[4][400];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", io_folder, name);
    return path;
}

static void io_begin(void)
{
    int rank;
    MPI_Comm_rank(WORLD, &rank);
    if (rank == 0) {
        snprintf(io_folder, sizeof io_folder, "%s/limosa-io-XXXXXX", lt_folder());
        if (mkdtemp(io_folder) == NULL) {
            perror(io_folder);
            MPI_Abort(WORLD, 97);
        }
    }
    MPI_Bcast(io_folder, sizeof io_folder, MPI_CHAR, 0, WORLD);
}

static void io_end(void)
{
    int rank;
    MPI_Comm_rank(WORLD, &rank);
    MPI_Barrier(WORLD);
    DIR *folder = rank == 0 ? opendir(io_folder) : NULL;
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove(io_path(entry->d_name));
    closedir(folder);
    rmdir(io_folder);
}

/* The size of a file, -1 if there is none. */
static LT_UNUSED long long io_size(const char *path)
{
    struct stat state;
    return stat(path, &state) == 0 ? (long long)state.st_size : -1;
}

/* Makes a file with these bytes. Collective: it is there when the call returns. */
static LT_UNUSED void io_make(const char *path, const void *bytes, size_t n)
{
    MPI_Barrier(WORLD);
    if (lt_rank == 0) {
        int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
        close(fd);
    }
    MPI_Barrier(WORLD);
}

/* The n bytes of a file at an offset; what lies beyond its end is 0xee. */
static LT_UNUSED unsigned char *io_look(const char *path, long long offset, size_t n)
{
    unsigned char *bytes = lt_alloc(n);
    memset(bytes, 0xee, n);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    for (size_t done = 0; fd >= 0 && done < n;) {
        ssize_t got = pread(fd, bytes + done, n - done, (off_t)offset + (off_t)done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    close(fd);
    return bytes;
}

static LT_UNUSED void io_same(const char *file, int line, const char *path, const void *expected, size_t n)
{
    MPI_Barrier(WORLD);
    if (lt_rank == 0) {
        lt_count_check();
        if (io_size(path) != (long long)n)
            lt_fail(file, line, "%s has %lld bytes instead of %zu", path, io_size(path), n);
        unsigned char *bytes = io_look(path, 0, n);
        lt_bytes(file, line, path, bytes, expected, n);
        free(bytes);
    }
    MPI_Barrier(WORLD);
}

/* The file must have these bytes and no others. Collective. */
#define CHECK_FILE(path, expected, n) io_same(__FILE__, __LINE__, (path), (expected), (n))

static LT_UNUSED MPI_File io_open(MPI_Comm comm, const char *name, int mode)
{
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(comm, io_path(name), mode, MPI_INFO_NULL, &file));
    return file;
}

/* A new file, without what an earlier test has left under this name. Collective over the world. */
static LT_UNUSED MPI_File io_new(const char *name)
{
    MPI_Barrier(WORLD);
    if (lt_rank == 0)
        remove(io_path(name));
    MPI_Barrier(WORLD);
    return io_open(WORLD, name, NEW);
}

/* What all ranks have written is there for all. Collective over the world. */
static LT_UNUSED void io_settle(MPI_File file)
{
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(WORLD));
    OK(MPI_File_sync(file));
}

static LT_UNUSED void io_count(const char *file, int line, const MPI_Status *status, MPI_Datatype type, int count)
{
    int got = -12345;
    lt_count_check();
    MPI_Get_count(status, type, &got);
    if (got != count)
        lt_fail(file, line, "MPI_Get_count: expected %d, got %d", count, got);
}

#define CHECK_COUNT(status, type, count) io_count(__FILE__, __LINE__, (status), (type), (count))

static uint64_t io_state = 1;

/* The same on every rank that has drawn as often. */
static LT_UNUSED unsigned draw(unsigned below)
{
    io_state = io_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(io_state >> 33) % below;
}

#define IO_MAIN(name, ...)                                                                                             \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        static const lt_test tests[] = {__VA_ARGS__};                                                                  \
        if (MPI_Init(&argc, &argv) != MPI_SUCCESS)                                                                     \
            return 98;                                                                                                 \
        io_begin();                                                                                                    \
        long failures = lt_run(name, tests, sizeof tests / sizeof *tests);                                             \
        io_end();                                                                                                      \
        MPI_Finalize();                                                                                                \
        return failures != 0;                                                                                          \
    }

#endif
