/* A slow, obvious model of datatypes: a list of (offset, bytes) blocks in type-map order, with explicit bounds.
 *
 * Each constructor of the standard is written here a second time from its defining formula (MPI-5 section 5.1.2
 * onwards), with no optimisation. The programs compare what the library moves with what the model says.
 */
#ifndef LIMOSA_TYPE_LAYOUT_H
#define LIMOSA_TYPE_LAYOUT_H

#include "limosa_test.h"

typedef struct {
    MPI_Aint at;
    size_t bytes;
} block;

typedef struct {
    block *blocks;
    size_t n, room;
    MPI_Aint lb, ub;
    int bounded;
} layout;

static LT_UNUSED void layout_free(layout *l)
{
    free(l->blocks);
    memset(l, 0, sizeof *l);
}

/* Adds a block and stretches the bounds. */
static LT_UNUSED void layout_block(layout *l, MPI_Aint at, size_t bytes)
{
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 16;
        l->blocks = realloc(l->blocks, l->room * sizeof *l->blocks);
    }
    l->blocks[l->n].at = at;
    l->blocks[l->n++].bytes = bytes;
}

static LT_UNUSED void layout_bounds(layout *l, MPI_Aint lb, MPI_Aint ub)
{
    if (!l->bounded || lb < l->lb)
        l->lb = lb;
    if (!l->bounded || ub > l->ub)
        l->ub = ub;
    l->bounded = 1;
}

static LT_UNUSED layout layout_basic(size_t bytes)
{
    layout l = {0};
    layout_block(&l, 0, bytes);
    layout_bounds(&l, 0, (MPI_Aint)bytes);
    return l;
}

/* Places `count` consecutive copies of `old` at byte `at`. */
static LT_UNUSED void layout_place(layout *l, const layout *old, MPI_Aint at, MPI_Aint count)
{
    MPI_Aint extent = old->ub - old->lb;
    for (MPI_Aint i = 0; i < count; i++) {
        for (size_t b = 0; b < old->n; b++)
            layout_block(l, at + i * extent + old->blocks[b].at, old->blocks[b].bytes);
        layout_bounds(l, at + i * extent + old->lb, at + i * extent + old->ub);
    }
}

static LT_UNUSED size_t layout_size(const layout *l)
{
    size_t size = 0;
    for (size_t b = 0; b < l->n; b++)
        size += l->blocks[b].bytes;
    return size;
}

static LT_UNUSED void layout_true_bounds(const layout *l, MPI_Aint *lb, MPI_Aint *ub)
{
    *lb = *ub = 0;
    for (size_t b = 0; b < l->n; b++) {
        MPI_Aint end = l->blocks[b].at + (MPI_Aint)l->blocks[b].bytes;
        *lb = b == 0 || l->blocks[b].at < *lb ? l->blocks[b].at : *lb;
        *ub = b == 0 || end > *ub ? end : *ub;
    }
}

/* The packed stream of `count` elements at `base`. */
static LT_UNUSED void layout_pack(const layout *l, const unsigned char *base, int count, unsigned char *stream)
{
    for (int i = 0; i < count; i++) {
        for (size_t b = 0; b < l->n; b++) {
            memcpy(stream, base + i * (l->ub - l->lb) + l->blocks[b].at, l->blocks[b].bytes);
            stream += l->blocks[b].bytes;
        }
    }
}

static LT_UNUSED void layout_unpack(const layout *l, unsigned char *base, int count, const unsigned char *stream)
{
    for (int i = 0; i < count; i++) {
        for (size_t b = 0; b < l->n; b++) {
            memcpy(base + i * (l->ub - l->lb) + l->blocks[b].at, stream, l->blocks[b].bytes);
            stream += l->blocks[b].bytes;
        }
    }
}

/* The library's size, extents, packing, and transfer of `type` (committed here) must be those of the model. */
static LT_UNUSED void layout_compare(const char *name, MPI_Datatype type, const layout *l)
{
    enum { COUNT = 3, TAG = 17 };
    const char *outer = lt_current;
    lt_current = name;
    int size = -1;
    MPI_Aint lb, extent, true_lb, true_extent, low, high, first, last;
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_size(type, &size));
    CHECK_INT(size, layout_size(l));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK_INT(lb, l->lb);
    CHECK_INT(extent, l->ub - l->lb);
    layout_true_bounds(l, &low, &high);
    OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    CHECK_INT(true_lb, low);
    CHECK_INT(true_extent, high - low);
    /* Memory that covers COUNT elements whatever the signs of bounds and extent. */
    MPI_Aint shift = (COUNT - 1) * (l->ub - l->lb);
    first = low + (shift < 0 ? shift : 0);
    last = high + (shift > 0 ? shift : 0);
    size_t room = (size_t)(last - first), stream_bytes = COUNT * layout_size(l);
    unsigned char *memory = lt_alloc(room), *expected = lt_alloc(room), *stream = lt_alloc(stream_bytes),
                  *packed = lt_alloc(stream_bytes);
    lt_fill(memory, room, 1);
    layout_pack(l, memory - first, COUNT, stream);
    /* Pack and unpack. */
    int position = 0;
    OK(MPI_Pack(memory - first, COUNT, type, packed, (int)stream_bytes, &position, MPI_COMM_WORLD));
    CHECK_INT(position, stream_bytes);
    CHECK_BYTES(packed, stream, stream_bytes);
    memset(memory, 0xaa, room);
    memset(expected, 0xaa, room);
    layout_unpack(l, expected - first, COUNT, stream);
    position = 0;
    OK(MPI_Unpack(stream, (int)stream_bytes, &position, memory - first, COUNT, type, MPI_COMM_WORLD));
    CHECK_INT(position, stream_bytes);
    CHECK_BYTES(memory, expected, room);
    /* Typed to typed through a message to oneself; nothing between the blocks is touched. The signatures are equal, so
     * bytes suffice. */
    unsigned char *arrived = lt_alloc(room);
    MPI_Request request;
    MPI_Status status;
    memset(arrived, 0xaa, room);
    OK(MPI_Irecv(arrived - first, COUNT, type, 0, TAG, MPI_COMM_SELF, &request));
    OK(MPI_Send(memory - first, COUNT, type, 0, TAG, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));
    if (layout_size(l) > 0)
        CHECK_STATUS(&status, 0, TAG, type, COUNT);
    CHECK_BYTES(arrived, expected, room);
    /* And to another process. */
    if (lt_size > 1) {
        int to = (lt_rank + 1) % lt_size, from = (lt_rank + lt_size - 1) % lt_size;
        memset(arrived, 0xaa, room);
        OK(MPI_Sendrecv(memory - first, COUNT, type, to, TAG, arrived - first, COUNT, type, from, TAG, MPI_COMM_WORLD,
                        &status));
        CHECK_BYTES(arrived, expected, room);
    }
    free(memory);
    free(expected);
    free(stream);
    free(packed);
    free(arrived);
    lt_current = outer;
}

#endif
