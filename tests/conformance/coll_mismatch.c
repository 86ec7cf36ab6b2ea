/* Blocking collectives whose ranks disagree about lengths: every call returns, at least one rank is told, and the
 * communicator works on. The standard calls such programs erroneous; that nothing hangs and that the error is named is
 * this library's promise. */
#include "coll.h"

/* Lengths in ints, chosen to fall on different sides of all thresholds. */
static const int lengths[] = {0, 1, 200, 3000, 20000, 300000};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, MOST = 300000 };

static int *out, *in;

typedef int call(int n, int root);

static int bcast(int n, int root)
{
    return MPI_Bcast(out, n, MPI_INT, root, comm);
}
static int reduce(int n, int root)
{
    return MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, comm);
}
static int allreduce(int n, int root)
{
    return (void)root, MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comm);
}
static int gather(int n, int root)
{
    return MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, comm);
}
static int scatter(int n, int root)
{
    return MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, comm);
}
static int allgather(int n, int root)
{
    return (void)root, MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, comm);
}
static int alltoall(int n, int root)
{
    return (void)root, MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, comm);
}
static int reduce_scatter(int n, int root)
{
    return (void)root, MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, comm);
}
static int scan(int n, int root)
{
    return (void)root, MPI_Scan(out, in, n, MPI_INT, MPI_SUM, comm);
}

static int gatherv(int n, int root)
{
    int counts[64], displs[64];
    for (int r = 0; r < size; r++)
        counts[r] = n, displs[r] = r * n;
    return MPI_Gatherv(out, n, MPI_INT, in, counts, displs, MPI_INT, root, comm);
}

static int scatterv(int n, int root)
{
    int counts[64], displs[64];
    for (int r = 0; r < size; r++)
        counts[r] = n, displs[r] = r * n;
    return MPI_Scatterv(out, counts, displs, MPI_INT, in, n, MPI_INT, root, comm);
}

static int alltoallv(int n, int root)
{
    int counts[64], displs[64];
    (void)root;
    for (int r = 0; r < size; r++)
        counts[r] = n, displs[r] = r * n;
    return MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm);
}

/* One rank, `odd`, has another length than the others. */
static void disagree(const char *name, call *collective, int root, int odd)
{
    for (int a = 0; a < N_LENGTHS; a++) {
        for (int b = 0; b < N_LENGTHS; b++) {
            int code = collective(rank == odd ? lengths[b] : lengths[a], root), class = lt_class(code), worst;
            OK(MPI_Barrier(comm));
            OK(MPI_Allreduce(&class, &worst, 1, MPI_INT, MPI_MAX, comm));
            if (a == b)
                CHECK_INT(worst, MPI_SUCCESS);
            else if (worst != MPI_ERR_TRUNCATE && worst != MPI_ERR_COUNT)
                lt_fail(__FILE__, __LINE__,
                        "%s of %d ints, of %d at rank %d, root %d: expected an error about lengths at some rank, got "
                        "class %d",
                        name, lengths[a], lengths[b], odd, root, worst);
        }
    }
}

#define DISAGREE(name, root, odd) disagree(#name, name, root, odd)

static void everybody_notices_in_time(void)
{
    comm = MPI_COMM_WORLD;
    rank = lt_rank, size = lt_size;
    if (size == 1)
        return;
    size_t bytes = sizeof(int) * MOST * (size_t)size;
    out = memset(lt_alloc(bytes), 0, bytes);
    in = memset(lt_alloc(bytes), 0, bytes);
    int last = size - 1;
    for (int odd = 0; odd < 2; odd++) {
        DISAGREE(bcast, odd, last);
        DISAGREE(gather, odd, last);
        DISAGREE(gatherv, odd, last);
        DISAGREE(scatter, odd, last);
        DISAGREE(scatterv, odd, last);
        DISAGREE(allgather, 0, odd);
        DISAGREE(alltoall, 0, odd);
        DISAGREE(alltoallv, 0, odd);
        DISAGREE(allreduce, 0, odd);
        DISAGREE(reduce, odd, last);
        DISAGREE(reduce_scatter, 0, odd);
        DISAGREE(scan, 0, odd);
    }
    free(out);
    free(in);
}

/* Errors in the arguments of frequent calls are told on a communicator whose members share memory already too, where
 * calls without errors check little. */
static void wrong_arguments_are_told_on_a_communicator_in_use(void)
{
    MPI_Comm mine;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &mine));
    OK(MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN));
    int one = 1, all = 0;
    char byte = 1, bytes = 0;
    MPI_Datatype made;
    OK(MPI_Type_contiguous(1, MPI_INT, &made));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Barrier(mine));
        CHECK_INT(lt_class(MPI_Bcast(&one, 1, MPI_INT, lt_size, mine)), MPI_ERR_ROOT);
        CHECK_INT(lt_class(MPI_Bcast(&one, 1, MPI_INT, -1, mine)), MPI_ERR_ROOT);
        CHECK_INT(lt_class(MPI_Bcast(&one, -1, MPI_INT, 0, mine)), MPI_ERR_COUNT);
        CHECK_INT(lt_class(MPI_Bcast(NULL, 1, MPI_INT, 0, mine)), MPI_ERR_BUFFER);
        CHECK_INT(lt_class(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, mine)), MPI_ERR_BUFFER);
        CHECK_INT(lt_class(MPI_Bcast(&one, 1, MPI_DATATYPE_NULL, 0, mine)), MPI_ERR_TYPE);
        CHECK_INT(lt_class(MPI_Bcast(&one, 1, made, 0, mine)), MPI_ERR_TYPE);
        CHECK_INT(lt_class(MPI_Allreduce(&one, &one, 1, MPI_INT, MPI_SUM, mine)), MPI_ERR_BUFFER);
        CHECK_INT(lt_class(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, mine)), MPI_ERR_BUFFER);
        CHECK_INT(lt_class(MPI_Allreduce(&byte, &bytes, 1, MPI_BYTE, MPI_SUM, mine)), MPI_ERR_OP);
        CHECK_INT(lt_class(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_REPLACE, mine)), MPI_ERR_OP);
        CHECK_INT(lt_class(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_OP_NULL, mine)), MPI_ERR_OP);
        CHECK_INT(lt_class(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_MINLOC, mine)), MPI_ERR_OP);
        OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, mine));
        CHECK_INT(all, lt_size);
        OK(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, mine));
        CHECK_INT(all, lt_size);
        OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_PROD, mine));
        CHECK_INT(all, 1);
        all = lt_rank == lt_size - 1 ? 7 : 0;
        OK(MPI_Bcast(&all, 1, MPI_INT, lt_size - 1, mine));
        CHECK_INT(all, 7);
    }
    OK(MPI_Type_free(&made));
    OK(MPI_Comm_free(&mine));
    CHECK_INT(lt_class(MPI_Barrier(mine)), MPI_ERR_COMM);
}

LT_MAIN("coll_mismatch", TEST(everybody_notices_in_time), TEST(wrong_arguments_are_told_on_a_communicator_in_use))
