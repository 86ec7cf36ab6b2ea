/* Wrong arguments under MPI_ERRORS_RETURN: the right error class, nothing broken afterwards (MPI-5 section 9.4).
 *
 * Wrong handles in every position of every function are the business of the ABI crate's own tests; here are all other
 * arguments, and freed and uncommitted objects. Every rank makes the same mistakes, so the collective calls are wrong
 * on all of them.
 */
#include "limosa_test.h"

#include <limits.h>
#include <unistd.h>

static int value[8];
static MPI_Request request;
static MPI_Status status;

/* Everything still works: called after each group of mistakes. */
static void usable(void)
{
    int sum = 0, one = 1, to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size, in = -1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(sum, lt_size);
    OK(MPI_Sendrecv(&lt_rank, 1, MPI_INT, to, 7, &in, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(in, from);
}

static int largest_tag(void)
{
    int *upper, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    return *upper;
}

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int send_c_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);

static isend_fn *const isends[] = {MPI_Isend,     MPI_Ibsend,     MPI_Issend,     MPI_Irsend,
                                   MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};
static send_fn *const sends[] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
static send_c_fn *const sends_c[] = {MPI_Send_c, MPI_Bsend_c, MPI_Ssend_c, MPI_Rsend_c};

static void sending(void)
{
    int upper = largest_tag();
    MPI_Datatype uncommitted, freed;
    MPI_Comm gone;
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(2, MPI_INT, &freed));
    OK(MPI_Type_commit(&freed));
    MPI_Datatype freed_value = freed;
    OK(MPI_Type_free(&freed));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &gone));
    MPI_Comm gone_value = gone;
    OK(MPI_Comm_free(&gone));
    const struct {
        int error, count;
        MPI_Datatype type;
        int to, tag;
        MPI_Comm comm;
        const void *buffer;
        const char *what;
    } cases[] = {
        {MPI_ERR_COUNT, -1, MPI_INT, 0, 1, MPI_COMM_WORLD, value, "negative count"},
        {MPI_ERR_COUNT, INT_MIN, MPI_INT, 0, 1, MPI_COMM_WORLD, value, "most negative count"},
        {MPI_ERR_RANK, 1, MPI_INT, lt_size, 1, MPI_COMM_WORLD, value, "rank beyond the end"},
        {MPI_ERR_RANK, 1, MPI_INT, INT_MAX, 1, MPI_COMM_WORLD, value, "largest rank"},
        {MPI_ERR_RANK, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, value, "any source as destination"},
        {MPI_ERR_RANK, 1, MPI_INT, -77, 1, MPI_COMM_WORLD, value, "negative rank"},
        {MPI_ERR_RANK, 1, MPI_INT, 1, 1, MPI_COMM_SELF, value, "rank 1 of MPI_COMM_SELF"},
        {MPI_ERR_TAG, 1, MPI_INT, 0, -1, MPI_COMM_WORLD, value, "tag -1"},
        {MPI_ERR_TAG, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, value, "any tag in a send"},
        {MPI_ERR_TAG, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_WORLD, value, "negative tag to no process"},
        {MPI_ERR_TYPE, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD, value, "no datatype"},
        {MPI_ERR_TYPE, 1, uncommitted, 0, 1, MPI_COMM_WORLD, value, "uncommitted datatype"},
        {MPI_ERR_TYPE, 1, freed_value, 0, 1, MPI_COMM_WORLD, value, "freed datatype"},
        {MPI_ERR_COMM, 1, MPI_INT, 0, 1, MPI_COMM_NULL, value, "no communicator"},
        {MPI_ERR_COMM, 1, MPI_INT, 0, 1, gone_value, value, "freed communicator"},
        {MPI_ERR_BUFFER, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, NULL, "null buffer"},
        {MPI_ERR_TAG, 1, MPI_INT, 0, upper == INT_MAX ? -9 : upper + 1, MPI_COMM_WORLD, value,
         "tag above the upper bound"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lt_current = cases[c].what;
        for (int m = 0; m < 4; m++) {
            FAILS(cases[c].error,
                  sends[m](cases[c].buffer, cases[c].count, cases[c].type, cases[c].to, cases[c].tag, cases[c].comm));
            FAILS(cases[c].error,
                  sends_c[m](cases[c].buffer, cases[c].count, cases[c].type, cases[c].to, cases[c].tag, cases[c].comm));
        }
        for (int m = 0; m < 8; m++)
            FAILS(cases[c].error, isends[m](cases[c].buffer, cases[c].count, cases[c].type, cases[c].to, cases[c].tag,
                                            cases[c].comm, &request));
        FAILS(cases[c].error, MPI_Sendrecv(cases[c].buffer, cases[c].count, cases[c].type, cases[c].to, cases[c].tag,
                                           value, 1, MPI_INT, MPI_PROC_NULL, 0, cases[c].comm, &status));
        usable();
    }
    OK(MPI_Type_free(&uncommitted));
}

static void receiving(void)
{
    MPI_Datatype uncommitted;
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag;
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    const struct {
        int error, count;
        MPI_Datatype type;
        int from, tag;
        MPI_Comm comm;
        void *buffer;
        const char *what;
    } cases[] = {
        {MPI_ERR_COUNT, -1, MPI_INT, 0, 1, MPI_COMM_WORLD, value, "negative count"},
        {MPI_ERR_RANK, 1, MPI_INT, lt_size, 1, MPI_COMM_WORLD, value, "rank beyond the end"},
        {MPI_ERR_RANK, 1, MPI_INT, -77, 1, MPI_COMM_WORLD, value, "negative rank"},
        {MPI_ERR_TAG, 1, MPI_INT, 0, -1, MPI_COMM_WORLD, value, "tag -1"},
        {MPI_ERR_TAG, 1, MPI_INT, MPI_ANY_SOURCE, INT_MIN, MPI_COMM_WORLD, value, "most negative tag"},
        {MPI_ERR_TYPE, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD, value, "no datatype"},
        {MPI_ERR_TYPE, 1, uncommitted, 0, 1, MPI_COMM_WORLD, value, "uncommitted datatype"},
        {MPI_ERR_COMM, 1, MPI_INT, 0, 1, MPI_COMM_NULL, value, "no communicator"},
        {MPI_ERR_BUFFER, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, NULL, "null buffer"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lt_current = cases[c].what;
        FAILS(cases[c].error, MPI_Recv(cases[c].buffer, cases[c].count, cases[c].type, cases[c].from, cases[c].tag,
                                       cases[c].comm, &status));
        FAILS(cases[c].error, MPI_Irecv(cases[c].buffer, cases[c].count, cases[c].type, cases[c].from, cases[c].tag,
                                        cases[c].comm, &request));
        FAILS(cases[c].error, MPI_Recv_init(cases[c].buffer, cases[c].count, cases[c].type, cases[c].from, cases[c].tag,
                                            cases[c].comm, &request));
        FAILS(cases[c].error, MPI_Sendrecv(value, 0, MPI_INT, MPI_PROC_NULL, 0, cases[c].buffer, cases[c].count,
                                           cases[c].type, cases[c].from, cases[c].tag, cases[c].comm, &status));
        usable();
    }
    lt_current = "probing";
    FAILS(MPI_ERR_RANK, MPI_Probe(lt_size, 1, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_TAG, MPI_Probe(0, -1, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_COMM, MPI_Iprobe(0, 1, MPI_COMM_NULL, &flag, &status));
    FAILS(MPI_ERR_RANK, MPI_Iprobe(-9, 1, MPI_COMM_WORLD, &flag, &status));
    FAILS(MPI_ERR_RANK, MPI_Mprobe(lt_size, 1, MPI_COMM_WORLD, &message, &status));
    FAILS(MPI_ERR_TAG, MPI_Improbe(0, -1, MPI_COMM_WORLD, &flag, &message, &status));
    message = MPI_MESSAGE_NULL;
    REFUSED(MPI_Mrecv(value, 1, MPI_INT, &message, &status));
    REFUSED(MPI_Imrecv(value, 1, MPI_INT, &message, &request));
    OK(MPI_Type_free(&uncommitted));
    usable();
}

static void requests(void)
{
    MPI_Request active, stale[2];
    int flag, index, count, indices[2];
    MPI_Status statuses[2];
    /* A request that has been completed, under the value that its handle had. */
    OK(MPI_Irecv(value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request));
    stale[0] = stale[1] = request;
    OK(MPI_Send(&lt_rank, 1, MPI_INT, 0, 3, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&stale[0], &status));
    FAILS(MPI_ERR_REQUEST, MPI_Test(&stale[0], &flag, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Waitall(2, stale, statuses));
    FAILS(MPI_ERR_REQUEST, MPI_Testall(2, stale, &flag, statuses));
    FAILS(MPI_ERR_REQUEST, MPI_Waitany(2, stale, &index, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Testany(2, stale, &index, &flag, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Waitsome(2, stale, &count, indices, statuses));
    FAILS(MPI_ERR_REQUEST, MPI_Testsome(2, stale, &count, indices, statuses));
    FAILS(MPI_ERR_REQUEST, MPI_Request_get_status(stale[0], &flag, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&stale[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&stale[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&stale[0]));
    request = MPI_REQUEST_NULL;
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    FAILS(MPI_ERR_REQUEST, MPI_Startall(1, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&request));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&request));
    /* Starting what is not persistent, or is already started. */
    OK(MPI_Irecv(value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &active));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&active));
    OK(MPI_Cancel(&active));
    OK(MPI_Wait(&active, &status));
    OK(MPI_Recv_init(value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &active));
    OK(MPI_Start(&active));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&active));
    OK(MPI_Cancel(&active));
    OK(MPI_Wait(&active, &status));
    OK(MPI_Request_free(&active));
    /* Numbers of requests. */
    FAILS(MPI_ERR_COUNT, MPI_Waitall(-1, stale, statuses));
    FAILS(MPI_ERR_COUNT, MPI_Testany(-1, stale, &index, &flag, &status));
    FAILS(MPI_ERR_COUNT, MPI_Startall(-1, stale));
    REFUSED(MPI_Waitall(2, NULL, statuses));
    usable();
}

static void add_up(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void collectives(void)
{
    static int in[64], out[64], counts[64], displacements[64], negative[64];
    static MPI_Datatype types[64], no_types[64];
    MPI_Datatype uncommitted;
    MPI_Op freed;
    int roots[] = {lt_size, -1, INT_MAX, INT_MIN, MPI_PROC_NULL, MPI_ROOT};
    for (int i = 0; i < lt_size; i++) {
        counts[i] = 1;
        displacements[i] = i;
        negative[i] = i == lt_size - 1 ? -1 : 1;
        types[i] = MPI_INT;
        no_types[i] = i == lt_size - 1 ? MPI_DATATYPE_NULL : MPI_INT;
    }
    OK(MPI_Type_contiguous(1, MPI_INT, &uncommitted));
    OK(MPI_Op_create(add_up, 1, &freed));
    MPI_Op freed_value = freed;
    OK(MPI_Op_free(&freed));
    const MPI_Comm world = MPI_COMM_WORLD, null = MPI_COMM_NULL;
    lt_current = "roots";
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        FAILS(MPI_ERR_ROOT, MPI_Bcast(out, 1, MPI_INT, roots[i], world));
        FAILS(MPI_ERR_ROOT, MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, roots[i], world));
        FAILS(MPI_ERR_ROOT, MPI_Gatherv(out, 1, MPI_INT, in, counts, displacements, MPI_INT, roots[i], world));
        FAILS(MPI_ERR_ROOT, MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, roots[i], world));
        FAILS(MPI_ERR_ROOT, MPI_Scatterv(out, counts, displacements, MPI_INT, in, 1, MPI_INT, roots[i], world));
        FAILS(MPI_ERR_ROOT, MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, roots[i], world));
    }
    usable();
    lt_current = "communicators";
    FAILS(MPI_ERR_COMM, MPI_Barrier(null));
    FAILS(MPI_ERR_COMM, MPI_Bcast(out, 1, MPI_INT, 0, null));
    FAILS(MPI_ERR_COMM, MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, null));
    FAILS(MPI_ERR_COMM, MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, null));
    lt_current = "counts";
    FAILS(MPI_ERR_COUNT, MPI_Bcast(out, -1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Bcast_c(out, -1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Gather(out, -1, MPI_INT, in, -1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Scatter(out, -1, MPI_INT, in, -1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Allgather(out, -1, MPI_INT, in, 1, MPI_INT, world));
    FAILS(MPI_ERR_COUNT, MPI_Allgather(out, 1, MPI_INT, in, -1, MPI_INT, world));
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(out, 1, MPI_INT, in, negative, displacements, MPI_INT, world));
    FAILS(MPI_ERR_COUNT, MPI_Alltoall(out, -1, MPI_INT, in, -1, MPI_INT, world));
    FAILS(MPI_ERR_COUNT,
          MPI_Alltoallv(out, negative, displacements, MPI_INT, in, counts, displacements, MPI_INT, world));
    FAILS(MPI_ERR_COUNT, MPI_Alltoallw(out, counts, displacements, types, in, negative, displacements, types, world));
    FAILS(MPI_ERR_COUNT, MPI_Reduce(out, in, -1, MPI_INT, MPI_SUM, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Allreduce(out, in, -1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter(out, in, negative, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter_block(out, in, -1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_COUNT, MPI_Scan(out, in, -1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_COUNT, MPI_Exscan(out, in, -1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_local(out, in, -1, MPI_INT, MPI_SUM));
    usable();
    lt_current = "datatypes";
    FAILS(MPI_ERR_TYPE, MPI_Bcast(out, 1, MPI_DATATYPE_NULL, 0, world));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(out, 1, uncommitted, 0, world));
    FAILS(MPI_ERR_TYPE, MPI_Allgather(out, 1, uncommitted, in, 1, MPI_INT, world));
    FAILS(MPI_ERR_TYPE, MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_DATATYPE_NULL, world));
    FAILS(MPI_ERR_TYPE, MPI_Alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, world));
    FAILS(MPI_ERR_TYPE, MPI_Alltoallw(out, counts, displacements, no_types, in, counts, displacements, types, world));
    FAILS(MPI_ERR_TYPE, MPI_Allreduce(out, in, 1, MPI_DATATYPE_NULL, MPI_SUM, world));
    usable();
    lt_current = "operations";
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_INT, MPI_OP_NULL, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_INT, freed_value, world));
    FAILS(MPI_ERR_OP, MPI_Reduce(out, in, 1, MPI_INT, MPI_OP_NULL, 0, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_BAND, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_FLOAT, MPI_LXOR, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_WCHAR, MPI_SUM, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_BYTE, MPI_SUM, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_INT, MPI_MAXLOC, world));
    FAILS(MPI_ERR_OP, MPI_Scan(out, in, 1, MPI_DOUBLE_INT, MPI_SUM, world));
    FAILS(MPI_ERR_OP, MPI_Reduce_local(out, in, 1, MPI_DOUBLE, MPI_BXOR));
    const MPI_Op one_sided[] = {MPI_REPLACE, MPI_NO_OP};
    for (int i = 0; i < 2; i++) {
        FAILS(MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_INT, one_sided[i], world));
        FAILS(MPI_ERR_OP, MPI_Reduce(out, in, 1, MPI_INT, one_sided[i], 0, world));
        FAILS(MPI_ERR_OP, MPI_Scan(out, in, 1, MPI_INT, one_sided[i], world));
        FAILS(MPI_ERR_OP, MPI_Reduce_scatter_block(out, in, 1, MPI_INT, one_sided[i], world));
        FAILS(MPI_ERR_OP, MPI_Reduce_local(out, in, 1, MPI_INT, one_sided[i]));
    }
    freed = MPI_SUM;
    FAILS(MPI_ERR_OP, MPI_Op_free(&freed));
    freed = MPI_OP_NULL;
    FAILS(MPI_ERR_OP, MPI_Op_free(&freed));
    freed = freed_value;
    FAILS(MPI_ERR_OP, MPI_Op_free(&freed));
    usable();
    lt_current = "buffers";
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(NULL, in, 1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(out, NULL, 1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(out, 1, MPI_INT, NULL, 1, MPI_INT, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, world));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(out, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world));
    OK(MPI_Type_free(&uncommitted));
    usable();
}

static void datatypes(void)
{
    MPI_Datatype type, named = MPI_INT, null = MPI_DATATYPE_NULL;
    int size, numbers[] = {1, 2}, minus[] = {1, -2}, position = 0;
    MPI_Aint lb, extent, at[] = {0, 8};
    const MPI_Datatype types[] = {MPI_INT, MPI_DATATYPE_NULL};
    char packed[16];
    FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
    FAILS(MPI_ERR_COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
    REFUSED(MPI_Type_vector(1, -1, 1, MPI_INT, &type));
    FAILS(MPI_ERR_COUNT, MPI_Type_create_hvector(-1, 1, 1, MPI_INT, &type));
    FAILS(MPI_ERR_COUNT, MPI_Type_indexed(-1, numbers, numbers, MPI_INT, &type));
    REFUSED(MPI_Type_indexed(2, minus, numbers, MPI_INT, &type));
    REFUSED(MPI_Type_indexed(2, NULL, numbers, MPI_INT, &type));
    REFUSED(MPI_Type_create_hindexed(2, numbers, NULL, MPI_INT, &type));
    REFUSED(MPI_Type_create_indexed_block(2, -1, numbers, MPI_INT, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_create_struct(2, numbers, at, types, &type));
    REFUSED(MPI_Type_create_struct(2, minus, at, types, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_dup(MPI_DATATYPE_NULL, &type));
    int sizes[] = {4, 5}, sub[] = {2, 6}, start[] = {0, 0}, late[] = {3, 0}, inside[] = {2, 2};
    REFUSED(MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_INT, &type));
    REFUSED(MPI_Type_create_subarray(2, sizes, inside, late, MPI_ORDER_C, MPI_INT, &type));
    REFUSED(MPI_Type_create_subarray(2, sizes, inside, start, 99, MPI_INT, &type));
    REFUSED(MPI_Type_create_subarray(0, sizes, inside, start, MPI_ORDER_C, MPI_INT, &type));
    int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, arguments[] = {1, MPI_DISTRIBUTE_DFLT_DARG},
        grid[] = {2, 2};
    REFUSED(MPI_Type_create_darray(4, 0, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    arguments[0] = MPI_DISTRIBUTE_DFLT_DARG;
    REFUSED(MPI_Type_create_darray(5, 0, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    REFUSED(MPI_Type_create_darray(4, 4, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    REFUSED(MPI_Type_create_darray(4, -1, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&named));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&null));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&null));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &size));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    MPI_Datatype stale = type;
    OK(MPI_Type_free(&type));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(stale, &size));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_extent(stale, &lb, &extent));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&stale));
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(2, stale, &type));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&stale));
    /* The place of the freed one is used again; the old handle still means nothing. */
    for (int i = 0; i < 100; i++) {
        OK(MPI_Type_contiguous(2, MPI_INT, &type));
        CHECK(type != stale);
        FAILS(MPI_ERR_TYPE, MPI_Type_size(stale, &size));
        OK(MPI_Type_free(&type));
    }
    FAILS(MPI_ERR_COUNT, MPI_Pack(value, -1, MPI_INT, packed, 16, &position, MPI_COMM_WORLD));
    REFUSED(MPI_Pack(value, 1, MPI_INT, packed, -1, &position, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COMM, MPI_Pack(value, 1, MPI_INT, packed, 16, &position, MPI_COMM_NULL));
    position = -4;
    REFUSED(MPI_Unpack(packed, 16, &position, value, 1, MPI_INT, MPI_COMM_WORLD));
    usable();
}

/* MPI_IN_PLACE has a meaning in collective operations only. */
static void in_place(void)
{
    int position = 0;
    char packed[64];
    MPI_Datatype pair;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    for (int n = 0; n < 3; n++) {
        int count = n == 2 ? 300000 : n;
        for (int m = 0; m < 4; m++) {
            FAILS(MPI_ERR_BUFFER, sends[m](MPI_IN_PLACE, count, MPI_INT, 0, 1, MPI_COMM_WORLD));
            FAILS(MPI_ERR_BUFFER, sends[m](MPI_IN_PLACE, count, pair, 0, 1, MPI_COMM_WORLD));
        }
        for (int m = 0; m < 8; m++)
            FAILS(MPI_ERR_BUFFER, isends[m](MPI_IN_PLACE, count, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Recv(MPI_IN_PLACE, count, MPI_INT, 0, 1, MPI_COMM_WORLD, &status));
        FAILS(MPI_ERR_BUFFER, MPI_Irecv(MPI_IN_PLACE, count, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Recv_init(MPI_IN_PLACE, count, pair, 0, 1, MPI_COMM_WORLD, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Sendrecv(MPI_IN_PLACE, count, MPI_INT, lt_rank, 1, value, 8, MPI_INT, lt_rank, 1,
                                           MPI_COMM_WORLD, &status));
        FAILS(MPI_ERR_BUFFER, MPI_Sendrecv(value, 1, MPI_INT, lt_rank, 1, MPI_IN_PLACE, count, MPI_INT, lt_rank, 1,
                                           MPI_COMM_WORLD, &status));
        FAILS(MPI_ERR_BUFFER,
              MPI_Sendrecv_replace(MPI_IN_PLACE, count, MPI_INT, lt_rank, 1, lt_rank, 1, MPI_COMM_WORLD, &status));
        FAILS(MPI_ERR_BUFFER, MPI_Pack(MPI_IN_PLACE, count, MPI_INT, packed, 64, &position, MPI_COMM_WORLD));
        FAILS(MPI_ERR_BUFFER, MPI_Unpack(packed, 64, &position, MPI_IN_PLACE, count, MPI_INT, MPI_COMM_WORLD));
        FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, count, MPI_INT, 0, MPI_COMM_SELF));
        usable();
    }
    OK(MPI_Type_free(&pair));
}

/* What is sent and what is received must not overlap. */
static void overlapping(void)
{
    int all[64], counts[1] = {4}, zero[1] = {0};
    MPI_Comm self = MPI_COMM_SELF;
    for (int shift = -3; shift <= 3; shift++) {
        int *from = all + 8, *to = from + shift;
        FAILS(MPI_ERR_BUFFER, MPI_Sendrecv(from, 4, MPI_INT, lt_rank, 1, to, 4, MPI_INT, lt_rank, 1, MPI_COMM_WORLD,
                                           MPI_STATUS_IGNORE));
        FAILS(MPI_ERR_BUFFER,
              MPI_Isendrecv(from, 4, MPI_INT, lt_rank, 1, to, 4, MPI_INT, lt_rank, 1, MPI_COMM_WORLD, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Allreduce(from, to, 4, MPI_INT, MPI_SUM, self));
        FAILS(MPI_ERR_BUFFER, MPI_Reduce(from, to, 4, MPI_INT, MPI_SUM, 0, self));
        FAILS(MPI_ERR_BUFFER, MPI_Scan(from, to, 4, MPI_INT, MPI_SUM, self));
        FAILS(MPI_ERR_BUFFER, MPI_Exscan(from, to, 4, MPI_INT, MPI_SUM, self));
        FAILS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(from, to, 4, MPI_INT, MPI_SUM, self));
        FAILS(MPI_ERR_BUFFER, MPI_Gather(from, 4, MPI_INT, to, 4, MPI_INT, 0, self));
        FAILS(MPI_ERR_BUFFER, MPI_Scatter(from, 4, MPI_INT, to, 4, MPI_INT, 0, self));
        FAILS(MPI_ERR_BUFFER, MPI_Allgather(from, 4, MPI_INT, to, 4, MPI_INT, self));
        FAILS(MPI_ERR_BUFFER, MPI_Alltoall(from, 4, MPI_INT, to, 4, MPI_INT, self));
        FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(from, counts, zero, MPI_INT, to, counts, zero, MPI_INT, self));
        FAILS(MPI_ERR_BUFFER, MPI_Gatherv(from, 4, MPI_INT, to, counts, zero, MPI_INT, 0, self));
        FAILS(MPI_ERR_BUFFER, MPI_Iallreduce(from, to, 4, MPI_INT, MPI_SUM, self, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Allreduce_init(from, to, 4, MPI_INT, MPI_SUM, self, MPI_INFO_NULL, &request));
        /* Nothing is sent, and next to each other is not overlapping. */
        OK(MPI_Allreduce(from, to, 0, MPI_INT, MPI_SUM, self));
        OK(MPI_Allgather(from, 0, MPI_INT, to, 0, MPI_INT, self));
        OK(MPI_Sendrecv(from, 0, MPI_INT, lt_rank, 1, to, 4, MPI_INT, lt_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Sendrecv(from, 4, MPI_INT, MPI_PROC_NULL, 1, to, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    }
    memset(all, 0, sizeof all);
    OK(MPI_Allreduce(all, all + 4, 4, MPI_INT, MPI_SUM, self));
    OK(MPI_Allreduce(all + 4, all, 4, MPI_INT, MPI_SUM, self));
    OK(MPI_Sendrecv(all + 4, 4, MPI_INT, lt_rank, 1, all, 4, MPI_INT, lt_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    char text[MPI_MAX_ERROR_STRING];
    int length, code = MPI_Allreduce(all, all + 1, 4, MPI_INT, MPI_SUM, self);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "MPI_IN_PLACE") != NULL);
    usable();
}

/* Programs set no datatype where they have no neighbour. */
static void nobody(void)
{
    MPI_Datatype none = MPI_DATATYPE_NULL;
    OK(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Isend(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(NULL, 0, none, MPI_PROC_NULL, 0, NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_TYPE, MPI_Send(NULL, 0, none, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Send(value, 1, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Sendrecv(NULL, 0, none, 0, 0, NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    usable();
}

/* A call that fails leaves the null handle where the new object's handle would be. */
static void handles_of_failed_calls(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_INT;
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Op op = MPI_SUM;
    MPI_Info info = MPI_INFO_ENV;
    FAILS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &comm));
    CHECK(comm == MPI_COMM_NULL);
    comm = MPI_COMM_WORLD;
    FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm));
    CHECK(comm == MPI_COMM_NULL);
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(2, MPI_DATATYPE_NULL, &type));
    CHECK(type == MPI_DATATYPE_NULL);
    FAILS(MPI_ERR_GROUP, MPI_Group_union(MPI_GROUP_NULL, MPI_GROUP_EMPTY, &group));
    CHECK(group == MPI_GROUP_NULL);
    FAILS(MPI_ERR_INFO, MPI_Info_dup(MPI_INFO_NULL, &info));
    CHECK(info == MPI_INFO_NULL);
    REFUSED(MPI_Op_create(NULL, 1, &op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Irecv(value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    memset(&request, 0x5a, sizeof request);
    FAILS(MPI_ERR_RANK, MPI_Irecv(value, 1, MPI_INT, lt_size, 0, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL);
    memset(&request, 0x5a, sizeof request);
    FAILS(MPI_ERR_COUNT, MPI_Isend(value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL);
    memset(&request, 0x5a, sizeof request);
    FAILS(MPI_ERR_ROOT, MPI_Ibcast(value, 1, MPI_INT, -7, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL);
}

static void communicators(void)
{
    MPI_Comm comm = MPI_COMM_NULL, world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    MPI_Group group, gone;
    int result;
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&world));
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&self));
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &result));
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_group(MPI_COMM_WORLD, &group));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm stale = comm;
    OK(MPI_Comm_free(&comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(stale, &result));
    FAILS(MPI_ERR_COMM, MPI_Comm_dup(stale, &comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_compare(stale, MPI_COMM_WORLD, &result));
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&stale));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &result));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    gone = group;
    OK(MPI_Group_free(&group));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(gone, &result));
    FAILS(MPI_ERR_GROUP, MPI_Group_free(&gone));
    FAILS(MPI_ERR_GROUP, MPI_Group_union(gone, MPI_GROUP_EMPTY, &group));
    REFUSED(MPI_Comm_rank(MPI_COMM_WORLD, NULL));
    REFUSED(MPI_Comm_size(MPI_COMM_WORLD, NULL));
    usable();
}

static void other_objects(void)
{
    MPI_Info info = MPI_INFO_NULL, gone;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int flag, keyval = MPI_KEYVAL_INVALID, length, n;
    void *attribute;
    char text[MPI_MAX_ERROR_STRING];
    FAILS(MPI_ERR_INFO, MPI_Info_free(&info));
    FAILS(MPI_ERR_INFO, MPI_Info_set(MPI_INFO_NULL, "key", "value"));
    OK(MPI_Info_create(&info));
    gone = info;
    REFUSED(MPI_Info_set(info, NULL, "value"));
    REFUSED(MPI_Info_set(info, "key", NULL));
    OK(MPI_Info_free(&info));
    FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(gone, &n));
    FAILS(MPI_ERR_INFO, MPI_Info_free(&gone));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Errhandler_free(&handler));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, NULL));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, 987654, &attribute, &flag));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&keyval));
    keyval = MPI_TAG_UB;
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&keyval));
    FAILS(MPI_ERR_KEYVAL, MPI_Type_get_attr(MPI_INT, MPI_KEYVAL_INVALID, &attribute, &flag));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    n = keyval;
    OK(MPI_Comm_free_keyval(&keyval));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, n, NULL));
    REFUSED(MPI_Error_string(-1, text, &length));
    REFUSED(MPI_Error_class(1 << 30, &n));
    REFUSED(MPI_Buffer_attach(value, -1));
    usable();
}

typedef int file_fn(MPI_File, void *, int, MPI_Datatype, MPI_Status *);
typedef int file_at_fn(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *);
typedef int ifile_fn(MPI_File, void *, int, MPI_Datatype, MPI_Request *);
typedef int ifile_at_fn(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Request *);

static int begin_and_end(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *result)
{
    int code = MPI_File_read_all_begin(file, buffer, count, type);
    return code != MPI_SUCCESS ? code : MPI_File_read_all_end(file, buffer, result);
}

/* What is wrong in each way to access a file; what is written is read only here, which is legal. */
static void accesses_to_file(int error, MPI_File file, MPI_Offset at, void *buffer, int count, MPI_Datatype type)
{
    static file_fn *const plain[] = {MPI_File_read,
                                     MPI_File_read_all,
                                     MPI_File_read_shared,
                                     MPI_File_read_ordered,
                                     begin_and_end,
                                     (file_fn *)MPI_File_write,
                                     (file_fn *)MPI_File_write_all,
                                     (file_fn *)MPI_File_write_shared,
                                     (file_fn *)MPI_File_write_ordered};
    static file_at_fn *const placed[] = {MPI_File_read_at, MPI_File_read_at_all, (file_at_fn *)MPI_File_write_at,
                                         (file_at_fn *)MPI_File_write_at_all};
    static ifile_fn *const started[] = {MPI_File_iread,
                                        MPI_File_iread_all,
                                        MPI_File_iread_shared,
                                        (ifile_fn *)MPI_File_iwrite,
                                        (ifile_fn *)MPI_File_iwrite_all,
                                        (ifile_fn *)MPI_File_iwrite_shared};
    static ifile_at_fn *const started_at[] = {MPI_File_iread_at, MPI_File_iread_at_all,
                                              (ifile_at_fn *)MPI_File_iwrite_at, (ifile_at_fn *)MPI_File_iwrite_at_all};
    for (int i = 0; i < 9 && at == 0; i++)
        FAILS(error, plain[i](file, buffer, count, type, &status));
    for (int i = 0; i < 6 && at == 0; i++)
        FAILS(error, started[i](file, buffer, count, type, &request));
    for (int i = 0; i < 4; i++) {
        FAILS(error, placed[i](file, at, buffer, count, type, &status));
        FAILS(error, started_at[i](file, at, buffer, count, type, &request));
    }
}

static void files(void)
{
    char path[] = "/tmp/limosa-arguments-XXXXXX";
    MPI_Datatype uncommitted, freed;
    MPI_File file, closed;
    MPI_Offset bytes = -1;
    if (lt_rank == 0)
        CHECK(close(mkstemp(path)) == 0);
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(2, MPI_INT, &freed));
    MPI_Datatype freed_value = freed;
    OK(MPI_Type_free(&freed));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &closed));
    file = closed;
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    accesses_to_file(MPI_ERR_COUNT, file, 0, value, -1, MPI_INT);
    accesses_to_file(MPI_ERR_COUNT, file, 0, value, INT_MIN, MPI_INT);
    accesses_to_file(MPI_ERR_TYPE, file, 0, value, 1, MPI_DATATYPE_NULL);
    accesses_to_file(MPI_ERR_TYPE, file, 0, value, 1, uncommitted);
    accesses_to_file(MPI_ERR_TYPE, file, 0, value, 1, freed_value);
    accesses_to_file(MPI_ERR_BUFFER, file, 0, NULL, 1, MPI_INT);
    accesses_to_file(MPI_ERR_ARG, file, -1, value, 1, MPI_INT);
    accesses_to_file(MPI_ERR_FILE, closed, 0, value, 1, MPI_INT);
    accesses_to_file(MPI_ERR_FILE, MPI_FILE_NULL, 0, value, 1, MPI_INT);
    OK(MPI_File_get_size(file, &bytes));
    CHECK_INT(bytes, 0);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&uncommitted));
    usable();
}

LT_MAIN("bad_arguments", TEST(sending), TEST(receiving), TEST(requests), TEST(collectives), TEST(datatypes),
        TEST(in_place), TEST(overlapping), TEST(nobody), TEST(handles_of_failed_calls), TEST(communicators),
        TEST(other_objects), TEST(files))
