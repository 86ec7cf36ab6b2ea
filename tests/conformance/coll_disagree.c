/* Ranks that call different collectives, or one with different roots or operations: every rank gets an
 * error that says which rank called what, in that call or in a later one on the communicator; all later ones fail;
 * nothing hangs. The standard calls such programs erroneous; this is the library's promise. */
#include "coll.h"

enum { MOST = 200000, LATER = 3 };
static const int lengths[] = {1, 200, 3000, MOST};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static int *out, *in;

/* What a rank does with `n` ints, and an argument: a root, or which operation. */
typedef int action(int n, int which);

static MPI_Op op_of(int which)
{
    return which ? MPI_MAX : MPI_SUM;
}

#define ACTION(name, call)                                                                                             \
    static int name(int n, int which)                                                                                  \
    {                                                                                                                  \
        (void)n, (void)which;                                                                                          \
        return call;                                                                                                   \
    }

ACTION(barrier, MPI_Barrier(comm))
ACTION(bcast, MPI_Bcast(out, n, MPI_INT, which, comm))
ACTION(gather, MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, which, comm))
ACTION(scatter, MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, which, comm))
ACTION(reduce, MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, which, comm))
ACTION(reduce_op, MPI_Reduce(out, in, n, MPI_INT, op_of(which), 0, comm))
ACTION(allreduce, MPI_Allreduce(out, in, n, MPI_INT, op_of(which), comm))
ACTION(scan, MPI_Scan(out, in, n, MPI_INT, op_of(which), comm))
ACTION(exscan, MPI_Exscan(out, in, n, MPI_INT, op_of(which), comm))
ACTION(reduce_scatter, MPI_Reduce_scatter_block(out, in, n, MPI_INT, op_of(which), comm))
ACTION(allgather, MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, comm))
ACTION(alltoall, MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, comm))

static int gatherv(int n, int root)
{
    int counts_[64], displs[64];
    for (int r = 0; r < size; r++)
        counts_[r] = n, displs[r] = r * n;
    return MPI_Gatherv(out, n, MPI_INT, in, counts_, displs, MPI_INT, root, comm);
}

static int scatterv(int n, int root)
{
    int counts_[64], displs[64];
    for (int r = 0; r < size; r++)
        counts_[r] = n, displs[r] = r * n;
    return MPI_Scatterv(out, counts_, displs, MPI_INT, in, n, MPI_INT, root, comm);
}

/* Rank `odd` does something else than the others, on a communicator of its own, which was used before or not. */
static void disagree(const char *what, action *most, int which, action *other, int other_which, int n, int odd,
                     const char *said)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, told = 0, code = MPI_SUCCESS;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* A rank still in a barrier before that, by slow messages, when the others disagree, may be told there. */
    for (int later = n % 2 ? -1 : 0; later <= LATER && !told; later++) {
        if (later != 0)
            code = MPI_Barrier(comm);
        else
            code = rank == odd ? other(n, other_which) : most(n, which);
        if (code != MPI_SUCCESS) {
            OK(MPI_Error_string(code, text, &length));
            told = 1;
        }
    }
    lt_count_check();
    if (!told)
        lt_fail(__FILE__, __LINE__, "%s of %d ints, rank %d differs: no error", what, n, odd);
    else if (!strstr(text, " called MPI_") || !strstr(text, said))
        lt_fail(__FILE__, __LINE__, "%s of %d ints, rank %d differs: no word of %s in: %s", what, n, odd, said, text);
    if (MPI_Bcast(out, 1, MPI_INT, rank, comm) == MPI_SUCCESS || MPI_Barrier(comm) == MPI_SUCCESS)
        lt_fail(__FILE__, __LINE__, "%s of %d ints, rank %d differs: a later call succeeds", what, n, odd);
    OK(MPI_Comm_free(&comm));
    /* Other communicators do not hear of it. */
    int sum = 0, one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(sum, size);
}

#define ROOTS(name) disagree(#name, name, 0, name, 1, n, odd, "with root 1")
#define OPERATIONS(name) disagree(#name, name, 0, name, 1, n, odd, "with MPI_MAX")
#define KINDS(one, two) disagree(#one " and " #two, one, 0, two, 0, n, odd, " called ")

static void everybody_is_told(void)
{
    rank = lt_rank, size = lt_size;
    if (size == 1)
        return;
    size_t bytes = sizeof(int) * MOST * (size_t)size;
    out = memset(lt_alloc(bytes), 0, bytes);
    in = memset(lt_alloc(bytes), 0, bytes);
    for (int l = 0; l < N_LENGTHS; l++) {
        int n = lengths[l];
        for (int odd = 0; odd < size; odd += size - 1) {
            ROOTS(bcast);
            ROOTS(gather);
            ROOTS(scatter);
            ROOTS(gatherv);
            ROOTS(scatterv);
            ROOTS(reduce);
            OPERATIONS(reduce_op);
            OPERATIONS(allreduce);
            OPERATIONS(scan);
            OPERATIONS(exscan);
            OPERATIONS(reduce_scatter);
            KINDS(barrier, bcast);
            KINDS(bcast, barrier);
            KINDS(bcast, gather);
            KINDS(scatter, gather);
            KINDS(gather, scatter);
            KINDS(allreduce, allgather);
            KINDS(allreduce, reduce);
            KINDS(reduce, allreduce);
            KINDS(allgather, alltoall);
            KINDS(barrier, allreduce);
            KINDS(scan, exscan);
        }
    }
    free(out), free(in);
}

/* Every rank takes itself for the root: all send, no rank receives. */
static void all_roots_are_told(void)
{
    int value = 0, told = 0;
    if (size == 1)
        return;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* Others may be ahead and have found it already. */
    told |= MPI_Barrier(comm) != MPI_SUCCESS;
    for (int i = 0; i < 3; i++)
        told |= MPI_Bcast(&value, 1, MPI_INT, rank, comm) != MPI_SUCCESS;
    told |= MPI_Barrier(comm) != MPI_SUCCESS;
    told |= MPI_Barrier(comm) != MPI_SUCCESS;
    CHECK_INT(told, 1);
    OK(MPI_Comm_free(&comm));
}

/* What is written differently but means the same is no difference; nor is a call that fails before it begins. */
static void legal_differences(void)
{
    int value = 1, sum = 0, got[64];
    MPI_Datatype pair;
    rank = lt_rank, size = lt_size;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    for (int i = 0; i < 300; i++) {
        int two[2] = {rank, i};
        OK(rank % 2 ? MPI_Bcast(two, 1, pair, i % size, MPI_COMM_WORLD)
                    : MPI_Bcast(two, 2, MPI_INT, i % size, MPI_COMM_WORLD));
        CHECK_INT(two[0], i % size);
        sum = 1;
        OK(rank % 2 ? MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)
                    : MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_INT(sum, size);
        int counts_[64], displs[64];
        for (int r = 0; r < size; r++)
            counts_[r] = 1, displs[r] = r;
        OK(rank == 0 ? MPI_Gather(&rank, 1, MPI_INT, got, 1, MPI_INT, 0, MPI_COMM_WORLD)
                     : MPI_Gather(&rank, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
        OK(MPI_Gatherv(&rank, 1, MPI_INT, got, counts_, displs, MPI_INT, 0, MPI_COMM_WORLD));
        if (i % 50 == 0)
            FAILS(MPI_ERR_COUNT, MPI_Bcast(two, -1, MPI_INT, i % size, MPI_COMM_WORLD));
        /* One rank's call fails before it begins; it is told, and the others need nothing of it. */
        if (i % 50 == 1 && size > 1 && lt_one_host()) {
            if (rank == size - 1)
                FAILS(MPI_ERR_COUNT, MPI_Bcast(two, -1, MPI_INT, 0, MPI_COMM_WORLD));
            else
                OK(MPI_Bcast(two, 2, MPI_INT, 0, MPI_COMM_WORLD));
        }
    }
    OK(MPI_Type_free(&pair));
}

LT_MAIN("coll_disagree", TEST(legal_differences), TEST(everybody_is_told), TEST(all_roots_are_told))
