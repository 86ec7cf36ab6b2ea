/* lab: ranks=2,4 limit=240 */
/* Files, beside plain system calls with the same bytes. `bytes` is what one rank writes or reads in an operation.
 *   io_write_plain, io_read_plain  pwrite and pread of a contiguous part by each rank: no MPI in the operation
 *   io_write_at                    MPI_File_write_at of the same part
 *   io_write_all, io_read_all      collective, each rank a block of a three-dimensional array of doubles
 *   io_write_strided               MPI_File_write of pieces of 64 bytes that lie between those of the other ranks
 *   io_write_shared                MPI_File_write_shared: the time of one record
 * The file lies in the folder $LAB_FOLDER, otherwise /tmp, and is removed. Nothing is synchronised with the disk: what
 * is measured is the way into the file system and back. Verified: all bytes of every rank, by plain reads. */
#include "lab.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

LAB_SIZES(sizes, (64 << 10, 512 << 10, 4 << 20, 32 << 20), (512 << 10, 4 << 20))
LAB_SIZES(strided_sizes, (4 << 10, 64 << 10, 1 << 20), (64 << 10))
LAB_SIZES(record_sizes, (8, 1 << 10, 64 << 10), (1 << 10))

enum { PIECE = 64 };

/* How the file is used in a case, and where its pieces lie. */
struct way {
    MPI_File file;
    int fd;
    int sizes[3], parts[3], starts[3]; /* of the array */
    enum { BLOCKS, CUBE, STRIDED, SHARED } layout;
    bool reads;
};

static char path[300];

static void open_file(struct way *w)
{
    const char *folder = getenv("LAB_FOLDER");
    if (lab.rank == 0) {
        snprintf(path, sizeof path, "%s/limosa-lab-XXXXXX", folder ? folder : "/tmp");
        int fd = mkstemp(path);
        if (fd < 0)
            lab_die("no file can be made in %s", folder ? folder : "/tmp");
        close(fd);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    w->fd = open(path, O_RDWR);
    if (w->fd < 0 || MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &w->file) != MPI_SUCCESS)
        lab_die("%s cannot be opened", path);
}

static void close_file(struct way *w)
{
    MPI_File_close(&w->file);
    close(w->fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (lab.rank == 0)
        unlink(path);
}

/* The array: its blocks have 2^n doubles, with sides as equal as can be. It is cut along its last dimension first, so
 * that rows of different ranks lie side by side in the file. */
static void make_cube(struct way *w, size_t bytes)
{
    int grid[3] = {0, 0, 0}, side[3] = {1, 1, 1};
    MPI_Dims_create(lab.ranks, 3, grid);
    size_t doubles = bytes / sizeof(double);
    for (int d = 2; doubles > 1; doubles /= 2, d = d ? d - 1 : 2)
        side[d] *= 2;
    int most = grid[0]; /* the largest comes first */
    grid[0] = grid[2];
    grid[2] = most;
    int at[3] = {lab.rank / (grid[1] * grid[2]), lab.rank / grid[2] % grid[1], lab.rank % grid[2]};
    for (int d = 0; d < 3; d++) {
        w->parts[d] = side[d];
        w->sizes[d] = side[d] * grid[d];
        w->starts[d] = side[d] * at[d];
    }
}

static void set_view(struct way *w, size_t bytes)
{
    MPI_Datatype type;
    if (w->layout == CUBE) {
        make_cube(w, bytes);
        MPI_Type_create_subarray(3, w->sizes, w->parts, w->starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    } else {
        MPI_Datatype piece;
        MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * lab.ranks, &type);
        MPI_Type_free(&piece);
    }
    MPI_Type_commit(&type);
    if (w->layout == CUBE)
        MPI_File_set_view(w->file, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL);
    else
        MPI_File_set_view(w->file, (MPI_Offset)PIECE * lab.rank, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
}

/* The place in the file of the contiguous piece that begins at byte `at` of a rank, and its length. */
static size_t piece_of(const struct way *w, size_t bytes, size_t at, size_t *length)
{
    if (w->layout == STRIDED) {
        *length = PIECE;
        return (at / PIECE * (size_t)lab.ranks + (size_t)lab.rank) * PIECE;
    }
    if (w->layout == BLOCKS) {
        *length = bytes;
        return (size_t)lab.rank * bytes;
    }
    *length = (size_t)w->parts[2] * sizeof(double);
    size_t row = at / *length;
    size_t x = (size_t)w->starts[0] + row / (size_t)w->parts[1], y = (size_t)w->starts[1] + row % (size_t)w->parts[1];
    return ((x * (size_t)w->sizes[1] + y) * (size_t)w->sizes[2] + (size_t)w->starts[2]) * sizeof(double);
}

/* Moves a rank's bytes by plain system calls. */
static bool plain(const struct way *w, char *buffer, size_t bytes, bool reads)
{
    size_t length;
    for (size_t at = 0; at < bytes; at += length) {
        off_t from = (off_t)piece_of(w, bytes, at, &length);
        ssize_t done = reads ? pread(w->fd, buffer + at, length, from) : pwrite(w->fd, buffer + at, length, from);
        if (done != (ssize_t)length)
            return false;
    }
    return true;
}

static double run_plain(struct lab_case *c, long operations)
{
    struct way *w = c->more;
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        plain(w, w->reads ? lab_receive_slot(&c->pool, slot) : lab_send_slot(&c->pool, slot), c->bytes, w->reads);
    }
    return lab_now() - start;
}

static double run_independent(struct lab_case *c, long operations)
{
    struct way *w = c->more;
    MPI_Offset at = w->layout == BLOCKS ? (MPI_Offset)c->bytes * lab.rank : 0;
    double start = lab_now();
    for (long i = 0; i < operations; i++)
        MPI_File_write_at(w->file, at, lab_send_slot(&c->pool, lab_next(&c->pool)), (int)c->bytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    return lab_now() - start;
}

static double run_collective(struct lab_case *c, long operations)
{
    struct way *w = c->more;
    int n = (int)(c->bytes / sizeof(double));
    double start = lab_now();
    for (long i = 0; i < operations; i++) {
        size_t slot = lab_next(&c->pool);
        if (w->reads)
            MPI_File_read_at_all(w->file, 0, lab_receive_slot(&c->pool, slot), n, MPI_DOUBLE, MPI_STATUS_IGNORE);
        else
            MPI_File_write_at_all(w->file, 0, lab_send_slot(&c->pool, slot), n, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    return lab_now() - start;
}

static double run_shared(struct lab_case *c, long operations)
{
    struct way *w = c->more;
    MPI_File_seek_shared(w->file, 0, MPI_SEEK_SET);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = lab_now();
    for (long i = 0; i < operations; i++)
        MPI_File_write_shared(w->file, lab_send_slot(&c->pool, lab_next(&c->pool)), (int)c->bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    double took = lab_now() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    return took;
}

static uint64_t key_of(int rank, size_t message)
{
    return lab_key(rank, rank, message);
}

/* What is to be written; or, of a read, what the file has before. */
static void fill(struct lab_case *c, size_t slot, size_t message)
{
    struct way *w = c->more;
    lab_fill(lab_send_slot(&c->pool, slot), c->bytes, key_of(lab.rank, message));
    memset(lab_receive_slot(&c->pool, slot), LAB_UNRECEIVED, c->bytes);
    if (w->reads && !plain(w, lab_send_slot(&c->pool, slot), c->bytes, false))
        lab_die("%s cannot be written", path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool check(struct lab_case *c, size_t slot, size_t message)
{
    struct way *w = c->more;
    char *got = lab_receive_slot(&c->pool, slot);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!w->reads && !plain(w, got, c->bytes, true))
        return false;
    return lab_check(got, c->bytes, key_of(lab.rank, message));
}

/* Each rank's record is somewhere. */
static bool check_shared(struct lab_case *c, size_t slot, size_t message)
{
    struct way *w = c->more;
    char *got = lab_receive_slot(&c->pool, slot), *mine = lab_send_slot(&c->pool, slot);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < lab.ranks; i++)
        if (pread(w->fd, got, c->bytes, (off_t)c->bytes * i) == (ssize_t)c->bytes && !memcmp(got, mine, c->bytes))
            return lab_check(got, c->bytes, key_of(lab.rank, message));
    return false;
}

static void measure(const char *bench, struct way w, size_t bytes, double (*run)(struct lab_case *, long))
{
    static struct lab_samples samples;
    struct lab_case c = {.bench = bench, .form = lab_forms[0], .bytes = bytes, .run = run, .fill = fill, .more = &w};
    c.check = w.layout == SHARED ? check_shared : check;
    if (!lab_wanted(bench) || !lab_pool_open(&c.pool, bytes, bytes, false))
        return;
    c.pool.checked = 1; /* every operation writes to the same place */
    open_file(&w);
    if (w.layout == CUBE || w.layout == STRIDED)
        set_view(&w, bytes);
    lab_measure(&c, &samples);
    if (w.layout == SHARED)
        lab_print_times(&c, &samples, "latency", "us", 1e6);
    else
        lab_print_rates(&c, &samples, "bandwidth", "MB/s", (double)bytes * lab.ranks * 1e-6);
    close_file(&w);
    lab_pool_close(&c.pool);
}

int main(int argc, char **argv)
{
    lab_start(argc, argv, MPI_THREAD_SINGLE, 1);
    if (!lab.forms[0])
        return lab_end(); /* there is no cold form */
    LAB_EACH_SIZE(bytes, sizes)
    {
        measure("io_write_plain", (struct way){.layout = BLOCKS}, *bytes, run_plain);
        measure("io_write_at", (struct way){.layout = BLOCKS}, *bytes, run_independent);
        measure("io_write_all", (struct way){.layout = CUBE}, *bytes, run_collective);
        measure("io_read_plain", (struct way){.layout = BLOCKS, .reads = true}, *bytes, run_plain);
        measure("io_read_all", (struct way){.layout = CUBE, .reads = true}, *bytes, run_collective);
    }
    LAB_EACH_SIZE(bytes, strided_sizes)
    measure("io_write_strided", (struct way){.layout = STRIDED}, *bytes, run_independent);
    LAB_EACH_SIZE(bytes, record_sizes)
    measure("io_write_shared", (struct way){.layout = SHARED}, *bytes, run_shared);
    return lab_end();
}
