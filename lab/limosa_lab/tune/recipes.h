/* The recipes: an operation done by others, with the same result (MPI-5 chapter 6).
 *
 * Contract
 * - The library is called by its PMPI_ names with the caller's communicator, so that its error handler is the one that
 *   errors go to. A code that is not MPI_SUCCESS ends a recipe and is given back.
 * - Datatypes may have gaps, and differ between ranks as far as their signatures are equal. Counts fit an int: what
 *   would not is never substituted.
 * - Operands combine in rank order, as far as the library's own reductions keep it.
 * - Memory for intermediate data is given back before the recipe ends (scratch.h). */
#ifndef RECIPES_H
#define RECIPES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

/* A communicator and this process in it. */
struct group {
    MPI_Comm comm;
    int rank, size;
};

/* A datatype: bytes of data, and where these lie. */
struct layout {
    MPI_Datatype type;
    MPI_Count size;
    MPI_Aint extent, true_low, true_extent;
    bool dense; /* the data in memory are those of a message */
};

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int no_memory(const struct group *g)
{
    PMPI_Comm_call_errhandler(g->comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

/* The bytes from the first to the last of so many elements, and where the first byte is from the buffer's address. */
static size_t span(const struct layout *l, MPI_Count count, MPI_Aint *first)
{
    MPI_Aint last = (MPI_Aint)(count - 1) * l->extent;
    *first = l->true_low + (last < 0 ? last : 0);
    return count > 0 ? (size_t)(l->true_extent + (last < 0 ? -last : last)) : 0;
}

/* Memory for so many elements, as the address of a buffer; `*block` is to be given back. NULL: there is none. */
static char *room(const struct layout *l, MPI_Count count, void **block)
{
    MPI_Aint first = 0;
    size_t bytes = span(l, count, &first);
    *block = take(bytes);
    return *block ? (char *)*block - first : NULL;
}

static char *element(const void *buffer, const struct layout *l, MPI_Count index)
{
    return (char *)buffer + (MPI_Aint)index * l->extent;
}

/* Copies between buffers of this process that hold the same data, perhaps in different layouts. */
static int copy(const struct group *g, const void *from, MPI_Count count, const struct layout *l, void *to,
                MPI_Count to_count, const struct layout *to_l)
{
    int bytes = (int)(count * l->size), at = 0;
    if (l->dense && to_l->dense) {
        memmove(to, from, (size_t)bytes);
        return MPI_SUCCESS;
    }
    char *packed = take((size_t)bytes);
    if (!packed)
        return no_memory(g);
    int code = PMPI_Pack(from, (int)count, l->type, packed, bytes, &at, g->comm);
    at = 0;
    if (!code)
        code = PMPI_Unpack(packed, bytes, &at, to, (int)to_count, to_l->type, g->comm);
    give(packed);
    return code;
}

/* Counts and displacements of as many blocks as there are ranks; given back by the caller. NULL: there is no memory. */
static int *blocks(const struct group *g, int each, int **displacements)
{
    int *counts = take(2 * (size_t)g->size * sizeof *counts);
    for (int i = 0; counts && i < g->size; i++) {
        counts[i] = each;
        counts[g->size + i] = i * each;
    }
    *displacements = counts ? counts + g->size : NULL;
    return counts;
}

/* The same for the parts of a vector that are as equal as they can be. */
static int *parts(const struct group *g, int count, int **displacements)
{
    int *counts = blocks(g, 0, displacements);
    for (int i = 0; counts && i < g->size; i++) {
        counts[i] = count / g->size + (i < count % g->size);
        (*displacements)[i] = i ? (*displacements)[i - 1] + counts[i - 1] : 0;
    }
    return counts;
}

/* --- one to all, all to one, all to all ----------------------------------------------------------------------------
 */

static int bcast_scatter_allgather(const struct group *g, void *buffer, int count, const struct layout *l, int root)
{
    int length = (int)(count * l->size), part = length / g->size, whole = part * g->size, at = 0;
    int code = MPI_SUCCESS;
    char *bytes = l->dense ? buffer : take((size_t)length);
    if (!bytes)
        return no_memory(g);
    if (!l->dense && g->rank == root)
        code = PMPI_Pack(buffer, count, l->type, bytes, length, &at, g->comm);
    if (!code && part)
        code = g->rank == root ? PMPI_Scatter(bytes, part, MPI_BYTE, MPI_IN_PLACE, part, MPI_BYTE, root, g->comm)
                               : PMPI_Scatter(NULL, 0, MPI_BYTE, bytes + g->rank * part, part, MPI_BYTE, root, g->comm);
    /* What is scattered in place already lies at the root. */
    if (!code && part)
        code = PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, part, MPI_BYTE, g->comm);
    if (!code && length > whole)
        code = PMPI_Bcast(bytes + whole, length - whole, MPI_BYTE, root, g->comm);
    at = 0;
    if (!code && !l->dense && g->rank != root)
        code = PMPI_Unpack(bytes, length, &at, buffer, count, l->type, g->comm);
    if (!l->dense)
        give(bytes);
    return code;
}

/* Bytes that are zero but at one rank are the same at all after an or. */
static int bcast_allreduce(const struct group *g, void *buffer, int count, const struct layout *l, int root)
{
    int length = (int)(count * l->size), at = 0, code = MPI_SUCCESS;
    char *bytes = take((size_t)length);
    if (!bytes)
        return no_memory(g);
    memset(bytes, 0, (size_t)length);
    if (g->rank == root)
        code = PMPI_Pack(buffer, count, l->type, bytes, length, &at, g->comm);
    if (!code)
        code = PMPI_Allreduce(MPI_IN_PLACE, bytes, length, MPI_BYTE, MPI_BOR, g->comm);
    at = 0;
    if (!code && g->rank != root)
        code = PMPI_Unpack(bytes, length, &at, buffer, count, l->type, g->comm);
    give(bytes);
    return code;
}

/* A buffer to send, and its elements. */
struct sent {
    const void *buffer;
    int count;
    const struct layout *l;
};

static int allgather_gather_bcast(const struct group *g, struct sent s, void *recvbuf, int recvcount,
                                  const struct layout *r)
{
    if (s.buffer == MPI_IN_PLACE && g->rank != 0)
        s = (struct sent){element(recvbuf, r, (MPI_Count)g->rank * recvcount), recvcount, r};
    int code = g->rank == 0 ? PMPI_Gather(s.buffer, s.count, s.l->type, recvbuf, recvcount, r->type, 0, g->comm)
                            : PMPI_Gather(s.buffer, s.count, s.l->type, NULL, 0, MPI_BYTE, 0, g->comm);
    return code ? code : PMPI_Bcast(recvbuf, recvcount * g->size, r->type, 0, g->comm);
}

static int allgather_allgatherv(const struct group *g, struct sent s, void *recvbuf, int recvcount,
                                const struct layout *r)
{
    int *displacements, *counts = blocks(g, recvcount, &displacements);
    if (!counts)
        return no_memory(g);
    int code = PMPI_Allgatherv(s.buffer, s.count, s.l->type, recvbuf, counts, displacements, r->type, g->comm);
    give(counts);
    return code;
}

/* Each sends the same block to all. */
static int allgather_alltoallv(const struct group *g, struct sent s, void *recvbuf, int recvcount,
                               const struct layout *r)
{
    void *block = NULL;
    int code = MPI_SUCCESS;
    if (s.buffer == MPI_IN_PLACE) {
        char *mine = room(r, recvcount, &block);
        const void *own = element(recvbuf, r, (MPI_Count)g->rank * recvcount);
        code = mine ? copy(g, own, recvcount, r, mine, recvcount, r) : no_memory(g);
        s = (struct sent){mine, recvcount, r};
    }
    int *to, *sent = blocks(g, s.count, &to), *from, *received = blocks(g, recvcount, &from);
    if (!code && (!sent || !received))
        code = no_memory(g);
    for (int i = 0; !code && i < g->size; i++)
        to[i] = 0;
    if (!code)
        code = PMPI_Alltoallv(s.buffer, sent, to, s.l->type, recvbuf, received, from, r->type, g->comm);
    give(sent);
    give(received);
    give(block);
    return code;
}

/* All blocks as bytes that are zero but for this rank's; NULL: there is no memory. `*code` says if packing failed. */
static char *own_bytes(const struct group *g, struct sent s, int length, int *code)
{
    int at = g->rank * length;
    char *bytes = take((size_t)length * (size_t)g->size);
    if (bytes)
        memset(bytes, 0, (size_t)length * (size_t)g->size);
    *code = bytes ? PMPI_Pack(s.buffer, s.count, s.l->type, bytes, length * g->size, &at, g->comm) : no_memory(g);
    return bytes;
}

static int unpack_blocks(const struct group *g, const char *bytes, int length, void *recvbuf, int recvcount,
                         const struct layout *r)
{
    int at = 0;
    return PMPI_Unpack(bytes, length * g->size, &at, recvbuf, recvcount * g->size, r->type, g->comm);
}

static int allgather_allreduce(const struct group *g, struct sent s, void *recvbuf, int recvcount,
                               const struct layout *r)
{
    int length = (int)(recvcount * r->size), code;
    if (s.buffer == MPI_IN_PLACE)
        s = (struct sent){element(recvbuf, r, (MPI_Count)g->rank * recvcount), recvcount, r};
    char *bytes = own_bytes(g, s, length, &code);
    if (!code)
        code = PMPI_Allreduce(MPI_IN_PLACE, bytes, length * g->size, MPI_BYTE, MPI_BOR, g->comm);
    if (!code)
        code = unpack_blocks(g, bytes, length, recvbuf, recvcount, r);
    give(bytes);
    return code;
}

/* `length`: the bytes of a block, which each rank knows from what it sends. */
static int gather_reduce(const struct group *g, struct sent s, int length, void *recvbuf, int recvcount,
                         const struct layout *r, int root)
{
    int code;
    if (s.buffer == MPI_IN_PLACE)
        s = (struct sent){element(recvbuf, r, (MPI_Count)root * recvcount), recvcount, r};
    char *bytes = own_bytes(g, s, length, &code);
    if (!code)
        code = PMPI_Reduce(g->rank == root ? MPI_IN_PLACE : bytes, bytes, length * g->size, MPI_BYTE, MPI_BOR, root,
                           g->comm);
    if (!code && g->rank == root)
        code = unpack_blocks(g, bytes, length, recvbuf, recvcount, r);
    give(bytes);
    return code;
}

/* Blocks of different lengths, gathered as bytes in the order of ranks. */
static int allgatherv_gatherv_bcast(const struct group *g, struct sent s, void *recvbuf, const int *counts,
                                    const int *displacements, const struct layout *r)
{
    int *to, *lengths = blocks(g, 0, &to), total = 0, at = 0, code = MPI_SUCCESS;
    for (int i = 0; lengths && i < g->size; total += lengths[i++]) {
        lengths[i] = (int)(counts[i] * r->size);
        to[i] = total;
    }
    char *bytes = lengths ? take((size_t)total) : NULL;
    if (!bytes)
        code = no_memory(g);
    else if (s.buffer == MPI_IN_PLACE)
        s = (struct sent){element(recvbuf, r, displacements[g->rank]), counts[g->rank], r};
    char *mine = bytes ? bytes + to[g->rank] : NULL;
    if (!code)
        code = PMPI_Pack(s.buffer, s.count, s.l->type, mine, lengths[g->rank], &at, g->comm);
    if (!code)
        code = PMPI_Gatherv(g->rank == 0 ? MPI_IN_PLACE : mine, lengths[g->rank], MPI_BYTE, bytes, lengths, to,
                            MPI_BYTE, 0, g->comm);
    if (!code)
        code = PMPI_Bcast(bytes, total, MPI_BYTE, 0, g->comm);
    for (int i = 0; !code && i < g->size; i++) {
        at = to[i];
        code = PMPI_Unpack(bytes, total, &at, element(recvbuf, r, displacements[i]), counts[i], r->type, g->comm);
    }
    give(bytes);
    give(lengths);
    return code;
}

/* At other ranks than the root, what it receives is counted as what they send. */
static int gather_allgather(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r,
                            int root)
{
    void *block = NULL;
    int code = MPI_SUCCESS;
    if (g->rank != root) {
        recvcount = s.count, r = s.l;
        recvbuf = room(r, (MPI_Count)recvcount * g->size, &block);
        code = recvbuf ? code : no_memory(g);
    } else if (s.buffer == MPI_IN_PLACE) {
        /* Only all ranks together could gather in place. */
        char *mine = room(r, recvcount, &block);
        const void *own = element(recvbuf, r, (MPI_Count)root * recvcount);
        code = mine ? copy(g, own, recvcount, r, mine, recvcount, r) : no_memory(g);
        s = (struct sent){mine, recvcount, r};
    }
    if (!code)
        code = PMPI_Allgather(s.buffer, s.count, s.l->type, recvbuf, recvcount, r->type, g->comm);
    give(block);
    return code;
}

static int gather_gatherv(const struct group *g, struct sent s, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                          int root)
{
    int *displacements, *counts = blocks(g, recvcount, &displacements);
    if (!counts)
        return no_memory(g);
    int code = PMPI_Gatherv(s.buffer, s.count, s.l->type, recvbuf, counts, displacements, recvtype, root, g->comm);
    give(counts);
    return code;
}

static int scatter_bcast(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r,
                         int root)
{
    void *block = NULL;
    char *all = (char *)s.buffer;
    if (g->rank != root) {
        s = (struct sent){NULL, recvcount, r};
        all = room(r, (MPI_Count)recvcount * g->size, &block);
    }
    int code = all ? PMPI_Bcast(all, s.count * g->size, s.l->type, root, g->comm) : no_memory(g);
    if (!code && recvbuf != MPI_IN_PLACE)
        code = copy(g, element(all, s.l, (MPI_Count)g->rank * s.count), s.count, s.l, recvbuf, recvcount, r);
    give(block);
    return code;
}

static int scatter_scatterv(const struct group *g, const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype, int root)
{
    int *displacements, *counts = blocks(g, sendcount, &displacements);
    if (!counts)
        return no_memory(g);
    int code = PMPI_Scatterv(sendbuf, counts, displacements, sendtype, recvbuf, recvcount, recvtype, root, g->comm);
    give(counts);
    return code;
}

static int alltoall_alltoallv(const struct group *g, struct sent s, void *recvbuf, int recvcount, MPI_Datatype recvtype)
{
    int *to, *sent = blocks(g, s.count, &to), *from, *received = blocks(g, recvcount, &from);
    int code = sent && received
                   ? PMPI_Alltoallv(s.buffer, sent, to, s.l->type, recvbuf, received, from, recvtype, g->comm)
                   : no_memory(g);
    give(sent);
    give(received);
    return code;
}

/* --- reductions ----------------------------------------------------------------------------------------------------
 */

/* `operands` are where the caller has them, in place or not. */
static int reduce_allreduce(const struct group *g, const void *operands, void *result, int count,
                            const struct layout *l, MPI_Op op, int root)
{
    void *block = NULL;
    bool is_free = g->rank == root && operands != result;
    char *target = is_free ? result : room(l, count, &block);
    int code = target ? PMPI_Allreduce(operands, target, count, l->type, op, g->comm) : no_memory(g);
    if (!code && g->rank == root && !is_free)
        code = copy(g, target, count, l, result, count, l);
    give(block);
    return code;
}

/* To one rank, or to all if `root` is negative. */
static int reduce_by_parts(const struct group *g, const void *operands, void *result, int count, const struct layout *l,
                           MPI_Op op, int root)
{
    void *block = NULL;
    int *displacements, *counts = parts(g, count, &displacements);
    char *part = counts ? room(l, counts[g->rank], &block) : NULL;
    int code = part ? PMPI_Reduce_scatter(operands, part, counts, l->type, op, g->comm) : no_memory(g);
    if (!code && root < 0)
        code = PMPI_Allgatherv(part, counts[g->rank], l->type, result, counts, displacements, l->type, g->comm);
    else if (!code)
        code = PMPI_Gatherv(part, counts[g->rank], l->type, result, counts, displacements, l->type, root, g->comm);
    give(block);
    give(counts);
    return code;
}

static int allreduce_reduce_bcast(const struct group *g, const void *sendbuf, void *recvbuf, int count,
                                  MPI_Datatype type, MPI_Op op)
{
    if (sendbuf == MPI_IN_PLACE && g->rank != 0)
        sendbuf = recvbuf;
    int code = PMPI_Reduce(sendbuf, recvbuf, count, type, op, 0, g->comm);
    return code ? code : PMPI_Bcast(recvbuf, count, type, 0, g->comm);
}

/* `counts` and `displacements` are those of all ranks' parts; their sum is `total`. */
static int reduce_scatter_reduce_scatter(const struct group *g, const void *operands, void *recvbuf, const int *counts,
                                         const int *displacements, int total, const struct layout *l, MPI_Op op)
{
    void *block = NULL;
    char *all = g->rank == 0 ? room(l, total, &block) : NULL;
    int code = all || g->rank ? PMPI_Reduce(operands, all, total, l->type, op, 0, g->comm) : no_memory(g);
    if (!code)
        code = PMPI_Scatterv(all, counts, displacements, l->type, recvbuf, counts[g->rank], l->type, 0, g->comm);
    give(block);
    return code;
}

static int reduce_scatter_allreduce(const struct group *g, const void *operands, void *recvbuf, const int *counts,
                                    const int *displacements, int total, const struct layout *l, MPI_Op op)
{
    void *block = NULL;
    char *all = room(l, total, &block);
    int code = all ? PMPI_Allreduce(operands, all, total, l->type, op, g->comm) : no_memory(g);
    if (!code)
        code = copy(g, element(all, l, displacements[g->rank]), counts[g->rank], l, recvbuf, counts[g->rank], l);
    give(block);
    return code;
}

/* Of the operands of the ranks before this one, and, if it is `inclusive`, its own. */
static int scan_by_allgather(const struct group *g, const void *operands, void *recvbuf, int count,
                             const struct layout *l, MPI_Op op, bool inclusive)
{
    void *block = NULL;
    int last = inclusive ? g->rank : g->rank - 1;
    char *all = room(l, (MPI_Count)count * g->size, &block);
    int code = all ? PMPI_Allgather(operands, count, l->type, all, count, l->type, g->comm) : no_memory(g);
    char *sum = all && last >= 0 ? element(all, l, (MPI_Count)last * count) : NULL;
    /* In rank order: MPI_Reduce_local has its first operand on the left. */
    for (int i = last - 1; !code && i >= 0; i--)
        code = PMPI_Reduce_local(element(all, l, (MPI_Count)i * count), sum, count, l->type, op);
    if (!code && sum)
        code = copy(g, sum, count, l, recvbuf, count, l);
    give(block);
    return code;
}

static int scan_allgather(const struct group *g, const void *operands, void *recvbuf, int count, const struct layout *l,
                          MPI_Op op)
{
    return scan_by_allgather(g, operands, recvbuf, count, l, op, true);
}

static int exscan_allgather(const struct group *g, const void *operands, void *recvbuf, int count,
                            const struct layout *l, MPI_Op op)
{
    return scan_by_allgather(g, operands, recvbuf, count, l, op, false);
}

static int scan_exscan(const struct group *g, const void *operands, void *recvbuf, int count, const struct layout *l,
                       MPI_Op op)
{
    void *block = NULL;
    char *before = room(l, count, &block);
    int code = before ? PMPI_Exscan(operands, before, count, l->type, op, g->comm) : no_memory(g);
    if (!code && operands != recvbuf)
        code = copy(g, operands, count, l, recvbuf, count, l);
    if (!code && g->rank > 0)
        code = PMPI_Reduce_local(before, recvbuf, count, l->type, op);
    give(block);
    return code;
}

static int barrier_allreduce(const struct group *g)
{
    double mine = 0, all;
    return PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, g->comm);
}

#endif
