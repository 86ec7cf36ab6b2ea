/* Collective operations replaced by combinations of others, at run time, for programs that are not compiled again.
 *
 * A library that is loaded before the MPI library (LD_PRELOAD). It has those collective functions for which there are
 * recipes (recipes.h), and calls the MPI library by the PMPI_ names. Which calls are replaced say the rules of the
 * variable LIMOSA_TUNED (rules.h); without rules for an operation its calls are passed on at once.
 *
 * Contract
 * - All ranks replace a call or none does: what decides is known to all alike, the number of ranks and the bytes, and
 *   the thread level.
 * - Passed on: calls on intercommunicators, without data, with 2 GB and more, or with arguments that are wrong, which
 *   the library then finds itself.
 * - Rules for a thread level hold from MPI_Init or MPI_Init_thread on, if all ranks have the same level; otherwise, and
 *   with the Sessions model alone, only rules without a level do.
 * - Between calls the rules and memory for intermediate data are kept (scratch.h).
 *
 * It is compiled with the mpi.h of the library that it is used with: for all libraries behind the standard ABI that is
 * one file. */
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "messages.h"
#include "recipes.h"
#include "rules.h"

/* --- what decides --------------------------------------------------------------------------------------------------
 */

/* Rank 0 says, once, that the rules make no sense. */
static bool tell(MPI_Comm comm)
{
    static bool is_told;
    int rank;
    if (*rules.wrong && !is_told && comm != MPI_COMM_NULL && !PMPI_Comm_rank(comm, &rank)) {
        is_told = true;
        if (rank == 0)
            fprintf(stderr, "limosa: LIMOSA_TUNED: %s; nothing is replaced\n", rules.wrong);
    }
    return false;
}

/* MPI_Init or MPI_Init_thread has made MPI_COMM_WORLD. */
static bool has_world;
/* A communicator has ranks of another MPI_COMM_WORLD. Their thread level may differ, and their launcher may not have
 * loaded this library: on that communicator nothing is replaced. */
static bool has_foreign_ranks;

static bool is_in_world(MPI_Comm comm)
{
    MPI_Group world, own, foreign;
    int count = 0;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &own);
    PMPI_Group_difference(own, world, &foreign);
    PMPI_Group_size(foreign, &count);
    PMPI_Group_free(&world);
    PMPI_Group_free(&own);
    PMPI_Group_free(&foreign);
    return count == 0;
}

/* Does a call on this communicator come into question? Operations without rules do not come here: their functions pass
 * calls on at once (entries.h). */
static bool is_open(enum operation operation, MPI_Comm comm, struct group *g)
{
    if (comm == MPI_COMM_NULL || *rules.wrong)
        return tell(comm);
    g->comm = comm;
    return !PMPI_Comm_size(comm, &g->size) && g->size > 1 && rules_have(operation, g->size) &&
           (!has_foreign_ranks || is_in_world(comm));
}

/* The recipe for a call of so many bytes; ITSELF if there is none. Bytes need the size of a datatype alone: what is not
 * replaced asks the library for nothing else. */
static enum recipe choose(enum operation operation, const struct group *g, long long bytes)
{
    return bytes > INT_MAX ? ITSELF : rules_choose(operation, g->size, bytes);
}

/* The rest of what is to be known of the group, once there is a recipe; false for an intercommunicator. */
static bool join(struct group *g)
{
    int inter = 1;
    return !PMPI_Comm_test_inter(g->comm, &inter) && !inter && !PMPI_Comm_rank(g->comm, &g->rank);
}

static bool size_of(MPI_Datatype type, struct layout *l)
{
    int size;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size))
        return false;
    l->type = type;
    /* One that is too long for an int is too long for a recipe. */
    l->size = size == MPI_UNDEFINED ? (MPI_Count)INT_MAX + 1 : size;
    return true;
}

static bool layout(MPI_Datatype type, struct layout *l)
{
    MPI_Aint low;
    int integers, addresses, types, combiner;
    if (!size_of(type, l) || PMPI_Type_get_extent(type, &low, &l->extent) ||
        PMPI_Type_get_true_extent(type, &l->true_low, &l->true_extent) ||
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner))
        return false;
    l->dense =
        combiner == MPI_COMBINER_NAMED && !low && !l->true_low && l->extent == l->size && l->true_extent == l->size;
    return true;
}

/* Bytes of `times` blocks of so many elements; 0 for what is not replaced: none, wrong ones, and too many. */
static long long bytes_of(MPI_Count count, const struct layout *l, int times)
{
    /* Exact, so that ranks with other datatypes of the same signature find the same. */
    if (count <= 0 || l->size <= 0 || count > INT_MAX / l->size || count * l->size > INT_MAX / times)
        return 0;
    return (long long)count * l->size * times;
}

static bool is_root(int root, const struct group *g)
{
    return root >= 0 && root < g->size;
}

/* --- calls: true if they were replaced; `*code` is what they return then --------------------------------------------
 */

/* Not inlined: a function that passes its call on then saves few registers. */
#define CALL __attribute__((noinline)) static bool

CALL bcast(int *code, void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct group g;
    struct layout l;
    long long bytes;
    if (!is_open(BCAST, comm, &g) || !is_root(root, &g) || !size_of(type, &l) || !(bytes = bytes_of(count, &l, 1)))
        return false;
    enum recipe recipe = choose(BCAST, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    static int (*const by[RECIPES])(const struct group *, void *, int, const struct layout *, int) = {
        [BCAST_SCATTER_ALLGATHER] = bcast_scatter_allgather,
        [BCAST_ALLREDUCE] = bcast_allreduce,
        [BCAST_SEND] = bcast_send,
    };
    *code = by[recipe](&g, buffer, (int)count, &l, root);
    return true;
}

CALL allgather(int *code, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct group g;
    struct layout s, r;
    long long bytes;
    if (!is_open(ALLGATHER, comm, &g) || !size_of(recvtype, &r) || !(bytes = bytes_of(recvcount, &r, g.size)))
        return false;
    bool in_place = sendbuf == MPI_IN_PLACE;
    enum recipe recipe = choose(ALLGATHER, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(recvtype, &r) || (!in_place && !layout(sendtype, &s)))
        return false;
    struct sent sent = {sendbuf, (int)(in_place ? recvcount : sendcount), in_place ? &r : &s};
    static int (*const by[RECIPES])(const struct group *, struct sent, void *, int, const struct layout *) = {
        [ALLGATHER_GATHER_BCAST] = allgather_gather_bcast,
        [ALLGATHER_ALLGATHERV] = allgather_allgatherv,
        [ALLGATHER_ALLTOALLV] = allgather_alltoallv,
        [ALLGATHER_ALLREDUCE] = allgather_allreduce,
        [ALLGATHER_SEND] = allgather_send,
    };
    *code = by[recipe](&g, sent, recvbuf, (int)recvcount, &r);
    return true;
}

/* `given` tells an element of the arrays that the program has passed. */
CALL allgatherv(int *code, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                MPI_Count (*given)(const void *, int), const void *recvcounts,
                MPI_Count (*given_place)(const void *, int), const void *displacements, MPI_Datatype recvtype,
                MPI_Comm comm)
{
    struct group g;
    struct layout s, r;
    if (!recvcounts || !displacements || !is_open(ALLGATHERV, comm, &g) || !size_of(recvtype, &r))
        return false;
    MPI_Count total = 0;
    for (int i = 0; i < g.size; i++) {
        MPI_Count count = given(recvcounts, i), place = given_place(displacements, i);
        /* Places differ between ranks: one that does not fit must not decide, and fits in all but a wrong program. */
        if (count < 0 || count > INT_MAX || place < INT_MIN || place > INT_MAX)
            return false;
        total += count;
    }
    long long bytes = bytes_of(total, &r, 1);
    bool in_place = sendbuf == MPI_IN_PLACE;
    if (!bytes || choose(ALLGATHERV, &g, bytes) == ITSELF || !join(&g) || !layout(recvtype, &r) ||
        (!in_place && !layout(sendtype, &s)))
        return false;
    int *places, *counts = blocks(&g, 0, &places);
    for (int i = 0; counts && i < g.size; i++) {
        counts[i] = (int)given(recvcounts, i);
        places[i] = (int)given_place(displacements, i);
    }
    struct sent sent = {sendbuf, (int)sendcount, &s};
    *code = counts ? allgatherv_gatherv_bcast(&g, sent, recvbuf, counts, places, &r) : no_memory(&g);
    give(counts);
    return true;
}

CALL gather(int *code, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
            MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct group g;
    struct layout s, r = {.type = MPI_BYTE};
    bool in_place = sendbuf == MPI_IN_PLACE; /* at the root */
    if (!is_open(GATHER, comm, &g) || !is_root(root, &g) || !size_of(in_place ? recvtype : sendtype, &s))
        return false;
    long long bytes = bytes_of(in_place ? recvcount : sendcount, &s, g.size);
    enum recipe recipe = bytes ? choose(GATHER, &g, bytes) : ITSELF;
    if (recipe == ITSELF || !join(&g) || (g.rank == root && !layout(recvtype, &r)) ||
        (in_place ? g.rank != root : !layout(sendtype, &s)))
        return false;
    struct sent sent = {sendbuf, (int)(in_place ? recvcount : sendcount), in_place ? &r : &s};
    if (recipe == GATHER_ALLGATHER)
        *code = gather_allgather(&g, sent, recvbuf, (int)recvcount, &r, root);
    else if (recipe == GATHER_REDUCE)
        *code = gather_reduce(&g, sent, (int)(bytes / g.size), recvbuf, (int)recvcount, &r, root);
    else if (recipe == GATHER_SEND)
        *code = gather_send(&g, sent, recvbuf, (int)recvcount, &r, root);
    else if (recipe == GATHER_GATHERV)
        *code = gather_gatherv(&g, sent, recvbuf, g.rank == root ? (int)recvcount : 0, r.type, root);
    return recipe != ITSELF;
}

CALL scatter(int *code, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
             MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct group g;
    struct layout s = {.type = MPI_BYTE}, r = {.type = MPI_BYTE};
    bool in_place = recvbuf == MPI_IN_PLACE; /* at the root */
    if (!is_open(SCATTER, comm, &g) || !is_root(root, &g) || !size_of(in_place ? sendtype : recvtype, &r))
        return false;
    long long bytes = bytes_of(in_place ? sendcount : recvcount, &r, g.size);
    enum recipe recipe = bytes ? choose(SCATTER, &g, bytes) : ITSELF;
    if (recipe == ITSELF || !join(&g) || (g.rank == root && !layout(sendtype, &s)) ||
        (in_place ? g.rank != root : !layout(recvtype, &r)))
        return false;
    if (g.rank != root)
        sendcount = 0;
    struct sent sent = {sendbuf, (int)sendcount, &s};
    if (recipe == SCATTER_BCAST)
        *code = scatter_bcast(&g, sent, recvbuf, (int)recvcount, &r, root);
    else if (recipe == SCATTER_SEND)
        *code = scatter_send(&g, sent, recvbuf, (int)recvcount, &r, root);
    else if (recipe == SCATTER_SCATTERV)
        *code =
            scatter_scatterv(&g, sendbuf, (int)sendcount, s.type, recvbuf, in_place ? 0 : (int)recvcount, r.type, root);
    return recipe != ITSELF;
}

CALL alltoall(int *code, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct group g;
    struct layout s, r;
    long long bytes;
    if (!is_open(ALLTOALL, comm, &g) || !size_of(recvtype, &r) || !(bytes = bytes_of(recvcount, &r, g.size)))
        return false;
    bool in_place = sendbuf == MPI_IN_PLACE;
    enum recipe recipe = choose(ALLTOALL, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(recvtype, &r) || (!in_place && !layout(sendtype, &s)))
        return false;
    struct sent sent = {sendbuf, (int)(in_place ? recvcount : sendcount), in_place ? &r : &s};
    *code = recipe == ALLTOALL_SEND ? alltoall_send(&g, sent, recvbuf, (int)recvcount, &r)
                                    : alltoall_alltoallv(&g, sent, recvbuf, (int)recvcount, recvtype);
    return true;
}

/* What all reductions share: bytes of the operands of a rank, `times` blocks. */
static long long reduced(MPI_Count count, int times, MPI_Datatype type, MPI_Op op, struct layout *l)
{
    return op != MPI_OP_NULL && size_of(type, l) ? bytes_of(count, l, times) : 0;
}

CALL reduce(int *code, const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm)
{
    struct group g;
    struct layout l;
    long long bytes;
    if (!is_open(REDUCE, comm, &g) || !is_root(root, &g) || !(bytes = reduced(count, 1, type, op, &l)))
        return false;
    enum recipe recipe = choose(REDUCE, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    const void *operands = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    *code = (recipe == REDUCE_ALLREDUCE ? reduce_allreduce : reduce_by_parts)(&g, operands, recvbuf, (int)count, &l, op,
                                                                              root);
    return true;
}

CALL allreduce(int *code, const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm)
{
    struct group g;
    struct layout l;
    long long bytes;
    if (!is_open(ALLREDUCE, comm, &g) || !(bytes = reduced(count, 1, type, op, &l)))
        return false;
    enum recipe recipe = choose(ALLREDUCE, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    const void *operands = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    if (recipe == ALLREDUCE_REDUCE_BCAST)
        *code = allreduce_reduce_bcast(&g, sendbuf, recvbuf, (int)count, type, op);
    else if (recipe == ALLREDUCE_REDUCE_SCATTER_ALLGATHER)
        *code = reduce_by_parts(&g, operands, recvbuf, (int)count, &l, op, -1);
    return recipe != ITSELF;
}

CALL scan(int *code, enum operation operation, const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type,
          MPI_Op op, MPI_Comm comm)
{
    struct group g;
    struct layout l;
    long long bytes;
    if (!is_open(operation, comm, &g) || !(bytes = reduced(count, 1, type, op, &l)))
        return false;
    /* All operands may be gathered. */
    enum recipe recipe = bytes_of(count, &l, g.size) ? choose(operation, &g, bytes) : ITSELF;
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    const void *operands = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    *code = (recipe == SCAN_EXSCAN      ? scan_exscan
             : recipe == SCAN_ALLGATHER ? scan_allgather
                                        : exscan_allgather)(&g, operands, recvbuf, (int)count, &l, op);
    return true;
}

CALL barrier(int *code, MPI_Comm comm)
{
    struct group g;
    if (!is_open(BARRIER, comm, &g) || choose(BARRIER, &g, 0) == ITSELF || !join(&g))
        return false;
    *code = barrier_allreduce(&g);
    return true;
}

/* Both forms of reduce_scatter, whose parts have counts as `counts` and `displacements` say. */
static void by_parts(int *code, enum recipe recipe, const struct group *g, const void *sendbuf, void *recvbuf,
                     const int *counts, const int *displacements, int total, const struct layout *l, MPI_Op op)
{
    const void *operands = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    if (recipe == BLOCK_REDUCE_SCATTER)
        *code = PMPI_Reduce_scatter(sendbuf, recvbuf, counts, l->type, op, g->comm);
    else
        *code = (recipe == REDUCE_SCATTER_ALLREDUCE || recipe == BLOCK_ALLREDUCE
                     ? reduce_scatter_allreduce
                     : reduce_scatter_reduce_scatter)(g, operands, recvbuf, counts, displacements, total, l, op);
}

CALL reduce_scatter_block(int *code, const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    struct group g;
    struct layout l;
    long long bytes;
    if (!is_open(REDUCE_SCATTER_BLOCK, comm, &g) || !(bytes = reduced(count, g.size, type, op, &l)))
        return false;
    enum recipe recipe = choose(REDUCE_SCATTER_BLOCK, &g, bytes);
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    int *displacements, *counts = blocks(&g, (int)count, &displacements);
    if (counts)
        by_parts(code, recipe, &g, sendbuf, recvbuf, counts, displacements, (int)count * g.size, &l, op);
    else
        *code = no_memory(&g);
    give(counts);
    return true;
}

/* `given` tells the count of a rank's part, out of the array that the program has passed. */
CALL reduce_scatter(int *code, const void *sendbuf, void *recvbuf, MPI_Count (*given)(const void *, int),
                    const void *array, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct group g;
    struct layout l;
    if (!array || !is_open(REDUCE_SCATTER, comm, &g))
        return false;
    MPI_Count total = 0;
    for (int i = 0; i < g.size; i++) {
        MPI_Count count = given(array, i);
        if (count < 0 || count > INT_MAX)
            return false;
        total += count;
    }
    long long bytes = reduced(total, 1, type, op, &l);
    enum recipe recipe = bytes ? choose(REDUCE_SCATTER, &g, bytes) : ITSELF;
    if (recipe == ITSELF || !join(&g) || !layout(type, &l))
        return false;
    int *displacements, *counts = blocks(&g, 0, &displacements);
    for (int i = 0, before = 0; counts && i < g.size; before += counts[i++]) {
        counts[i] = (int)given(array, i);
        displacements[i] = before;
    }
    if (counts)
        by_parts(code, recipe, &g, sendbuf, recvbuf, counts, displacements, (int)total, &l, op);
    else
        *code = no_memory(&g);
    give(counts);
    return true;
}

/* --- the functions -------------------------------------------------------------------------------------------------
 */

/* Selects the rules for the thread level, if all ranks have the same: the standard lets them ask for different ones. */
static void enter_world(void)
{
    int provided;
    has_world = true;
    if (!rules.by_level || PMPI_Query_thread(&provided))
        return;
    int level =
        (provided >= MPI_THREAD_FUNNELED) + (provided >= MPI_THREAD_SERIALIZED) + (provided >= MPI_THREAD_MULTIPLE);
    int most[2] = {level, -level};
    if (!PMPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD) && most[0] == -most[1])
        rules_select((enum level)level);
}

int MPI_Init(int *argc, char ***argv)
{
    int code = PMPI_Init(argc, argv);
    if (!code)
        enter_world();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (!code)
        enter_world();
    return code;
}

/* The only way to a communicator for collectives that has ranks of several worlds. */
int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
    int code = PMPI_Intercomm_merge(intercomm, high, newintracomm);
    if (!code && has_world && rules.count && !is_in_world(*newintracomm))
        has_foreign_ranks = true;
    return code;
}

int MPI_Barrier(MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    return rules.has[BARRIER] && barrier(&code, comm) ? code : PMPI_Barrier(comm);
}

#define COUNT int
#define PLAIN(name) MPI_##name
#define NEXT(name) PMPI_##name
#define PLACE int
#define GIVEN given_int
#define GIVEN_PLACE given_int_place
#include "entries.h"

#if MPI_VERSION >= 4
#undef COUNT
#undef PLAIN
#undef NEXT
#undef GIVEN
#undef PLACE
#undef GIVEN_PLACE
#define COUNT MPI_Count
#define PLAIN(name) MPI_##name##_c
#define NEXT(name) PMPI_##name##_c
#define PLACE MPI_Aint
#define GIVEN given_count
#define GIVEN_PLACE given_count_place
#include "entries.h"
#endif
