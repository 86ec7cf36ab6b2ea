/* Blocking collectives of some kilobytes, many in a row: ranks run ahead of each other as far as memory lets them, on
 * more communicators than get memory for that. */
#include "coll.h"

#include <unistd.h>

static const int lengths[] = {2049, 2500, 16384, 5000, 33000, 16400, 65536, 4097, 70001};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, MOST = 70001 };

static int *out, *in;

static int total(int end, int k, int i)
{
    unsigned sum = 0;
    for (int r = 0; r < end; r++)
        sum += (unsigned)value(r, k, i);
    return (int)sum;
}

static void fill(int *b, int sender, int receiver, int n)
{
    for (int i = 0; i < n; i++)
        b[i] = value(sender, receiver, i);
}

static void got_sum(const int *b, int n, int end, int k, int first)
{
    lt_count_check();
    for (int i = 0; i < n; i++)
        if (!same(__FILE__, __LINE__, b, 0, i, total(end, k, first + i)))
            return;
}

static void rooted(int k, int n, int root)
{
    if (rank == root)
        fill(in, root, k, n);
    OK(MPI_Bcast(in, n, MPI_INT, root, comm));
    GOT_BLOCK(in, 0, 0, n, root, k);

    fill(out, rank, k, n);
    OK(MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, comm));
    if (rank == root)
        got_sum(in, n, size, k, 0);

    OK(MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, comm));
    for (int r = 0; rank == root && r < size; r++)
        GOT_BLOCK(in, 0, (long)r * n, n, r, k);

    for (int r = 0; r < size; r++)
        fill(out + (long)r * n, rank, r, n);
    OK(MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, comm));
    GOT_BLOCK(in, 0, 0, n, root, rank);
}

static void among_all(int k, int n)
{
    OK(MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        GOT_BLOCK(in, 0, (long)r * n, n, r, rank);

    fill(out, rank, k, n);
    OK(MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        GOT_BLOCK(in, 0, (long)r * n, n, r, k);

    OK(MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comm));
    got_sum(in, n, size, k, 0);

    OK(MPI_Scan(out, in, n, MPI_INT, MPI_SUM, comm));
    got_sum(in, n, rank + 1, k, 0);

    OK(MPI_Exscan(out, in, n, MPI_INT, MPI_SUM, comm));
    if (rank > 0)
        got_sum(in, n, rank, k, 0);

    int counts[64], mine = n / size + (rank < n % size),
                    first = rank * (n / size) + (rank < n % size ? rank : n % size);
    for (int r = 0; r < size; r++)
        counts[r] = n / size + (r < n % size);
    OK(MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm));
    got_sum(in, mine, size, k, first);

    memcpy(in, out, sizeof(int) * (size_t)n);
    OK(MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
    got_sum(in, n, size, k, 0);

    memcpy(in, out, sizeof(int) * (size_t)n);
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM, comm));
    got_sum(in, mine, size, k, first);

    memcpy(in, out, sizeof(int) * (size_t)n);
    OK(MPI_Scan(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm));
    got_sum(in, n, rank + 1, k, 0);
}

static void all_of_them(int k)
{
    int n = lengths[k % N_LENGTHS];
    rooted(k, n, k % size);
    among_all(k, n);
}

static void they_give_what_they_should(void)
{
    for (int k = 0; k < N_LENGTHS; k++)
        all_of_them(k);
}

/* What the root has sent must not change under ranks that have not read it yet. */
static void a_root_runs_ahead_of_ranks_that_are_late(void)
{
    for (int k = 0; k < 150; k++) {
        int n = lengths[k % N_LENGTHS], root = (k / 75) % size;
        if (rank != root && k % 40 == 0)
            usleep(2000);
        if (rank == root)
            fill(in, root, k, n);
        OK(MPI_Bcast(in, n, MPI_INT, root, comm));
        if (rank != root)
            GOT_BLOCK(in, 0, 0, n, root, k);
        else
            memset(in, 0, sizeof(int) * (size_t)n);
    }
}

static void on_many_communicators_at_a_time(void)
{
    enum { MANY = 12 };
    MPI_Comm parent = comm, several[MANY];
    for (int c = 0; c < MANY; c++)
        OK(MPI_Comm_dup(parent, &several[c]));
    for (int c = 0; c < MANY; c++) {
        comm = several[c];
        all_of_them(c);
    }
    for (int c = 0; c < MANY; c++)
        OK(MPI_Comm_free(&several[c]));
    comm = parent;
}

static void everything(void)
{
    size_t bytes = sizeof(int) * MOST * (size_t)size;
    out = lt_alloc(bytes);
    in = lt_alloc(bytes);
    they_give_what_they_should();
    a_root_runs_ahead_of_ranks_that_are_late();
    on_many_communicators_at_a_time();
    free(out);
    free(in);
}

static void everything_on_the_world_and_its_halves(void)
{
    MPI_Comm halves;
    on(MPI_COMM_WORLD, everything);
    OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank % 2, lt_rank, &halves));
    on(halves, everything);
    OK(MPI_Comm_free(&halves));
}

LT_MAIN("coll_middle", TEST(everything_on_the_world_and_its_halves))
