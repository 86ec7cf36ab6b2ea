/* Recipes out of single messages.
 *
 * Contract
 * - Messages go on a communicator that is made for each of the program's when it is needed first, by all its ranks in
 *   the same call, so that the program's own receives never match them. It is kept as an attribute of the program's,
 *   and freed with it.
 * - Errors go to the handler of the program's communicator. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <pthread.h>

#include "recipes.h"

enum { TAG = 0 };

/* --- the communicator ----------------------------------------------------------------------------------------------
 */

static int key = MPI_KEYVAL_INVALID;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static int forget(MPI_Comm comm, int keyval, void *value, void *state)
{
    MPI_Comm *own = value;
    (void)comm, (void)keyval, (void)state;
    int code = PMPI_Comm_free(own);
    free(own);
    return code;
}

static void make_key(void)
{
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
}

/* The communicator for messages between the ranks of `g`. */
static int own_comm(const struct group *g, MPI_Comm *comm)
{
    MPI_Comm *own = NULL;
    int found = 0;
    pthread_once(&key_once, make_key);
    int code = PMPI_Comm_get_attr(g->comm, key, &own, &found);
    if (code || found) {
        *comm = found ? *own : MPI_COMM_NULL;
        return code;
    }
    if (!(own = malloc(sizeof *own)))
        return no_memory(g);
    /* A duplicate would copy the program's attributes, which calls its functions. */
    if ((code = PMPI_Comm_split(g->comm, 0, g->rank, own))) {
        free(own);
        return code;
    }
    PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
    *comm = *own;
    return PMPI_Comm_set_attr(g->comm, key, own);
}

/* --- a message to and from each of the others -----------------------------------------------------------------------
 */

/* Where the block for, or from, each rank lies; `buffer` NULL: none. `step`: the elements from block to block. */
struct blocks_of {
    char *buffer;
    int count, step;
    const struct layout *l;
};

static char *block_of(const struct blocks_of *b, int rank)
{
    return element(b->buffer, b->l, (MPI_Count)rank * b->step);
}

/* Sends a block to each rank, if `to` has any, and receives one from each, if `from` has any: of all but this rank, or,
 * if `root` is not negative, only to or from the root. */
static int exchange(const struct group *g, const struct blocks_of *to, const struct blocks_of *from, int root)
{
    MPI_Comm comm;
    MPI_Request *open = take(2 * (size_t)g->size * sizeof *open);
    int code = open ? own_comm(g, &comm) : no_memory(g), count = 0;
    if (!open || code) {
        give(open);
        return code;
    }
    /* Receives first, and every rank begins with its neighbour, so that no rank is sent everything at once. */
    for (int i = 1; !code && i < g->size; i++) {
        int peer = (g->rank + g->size - i) % g->size;
        if (from->buffer && (g->rank == root || root < 0 || peer == root))
            code = PMPI_Irecv(block_of(from, peer), from->count, from->l->type, peer, TAG, comm, &open[count++]);
    }
    for (int i = 1; !code && i < g->size; i++) {
        int peer = (g->rank + i) % g->size;
        if (to->buffer && (g->rank == root || root < 0 || peer == root))
            code = PMPI_Isend(block_of(to, peer), to->count, to->l->type, peer, TAG, comm, &open[count++]);
    }
    if (!code)
        code = PMPI_Waitall(count, open, MPI_STATUSES_IGNORE);
    give(open);
    if (code)
        PMPI_Comm_call_errhandler(g->comm, code);
    return code;
}

static int own_block(const struct group *g, const struct blocks_of *to, const struct blocks_of *from)
{
    return copy(g, block_of(to, g->rank), to->count, to->l, block_of(from, g->rank), from->count, from->l);
}

/* --- recipes -------------------------------------------------------------------------------------------------------
 */

/* Along a binomial tree. */
static int bcast_send(const struct group *g, void *buffer, int count, const struct layout *l, int root)
{
    MPI_Comm comm;
    int own = (g->rank - root + g->size) % g->size, bit = 1;
    int code = own_comm(g, &comm);
    if (code)
        return code;
    while (bit < g->size && !(own & bit))
        bit *= 2;
    if (own)
        code = PMPI_Recv(buffer, count, l->type, (own - bit + root) % g->size, TAG, comm, MPI_STATUS_IGNORE);
    for (bit /= 2; !code && bit; bit /= 2)
        if (own + bit < g->size)
            code = PMPI_Send(buffer, count, l->type, (own + bit + root) % g->size, TAG, comm);
    if (code)
        PMPI_Comm_call_errhandler(g->comm, code);
    return code;
}

static int alltoall_send(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r)
{
    void *block = NULL;
    struct blocks_of to = {(char *)s.buffer, s.count, s.count, s.l}, from = {recvbuf, recvcount, recvcount, r};
    int code = MPI_SUCCESS;
    if (s.buffer == MPI_IN_PLACE) {
        to = from;
        to.buffer = room(r, (MPI_Count)recvcount * g->size, &block);
        code = to.buffer ? copy(g, recvbuf, recvcount * g->size, r, to.buffer, recvcount * g->size, r) : no_memory(g);
    }
    if (!code && !block)
        code = own_block(g, &to, &from);
    if (!code)
        code = exchange(g, &to, &from, -1);
    give(block);
    return code;
}

static int allgather_send(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r)
{
    struct blocks_of from = {recvbuf, recvcount, recvcount, r}, to = {(char *)s.buffer, s.count, 0, s.l};
    int code = MPI_SUCCESS;
    if (s.buffer == MPI_IN_PLACE)
        to = (struct blocks_of){block_of(&from, g->rank), recvcount, 0, r};
    else
        code = own_block(g, &to, &from);
    return code ? code : exchange(g, &to, &from, -1);
}

static int gather_send(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r,
                       int root)
{
    struct blocks_of from = {recvbuf, recvcount, recvcount, r}, to = {(char *)s.buffer, s.count, 0, s.l};
    int code = MPI_SUCCESS;
    if (g->rank != root)
        from = (struct blocks_of){0};
    else {
        if (s.buffer != MPI_IN_PLACE)
            code = own_block(g, &to, &from);
        to = (struct blocks_of){0};
    }
    return code ? code : exchange(g, &to, &from, root);
}

static int scatter_send(const struct group *g, struct sent s, void *recvbuf, int recvcount, const struct layout *r,
                        int root)
{
    struct blocks_of to = {(char *)s.buffer, s.count, s.count, s.l}, from = {recvbuf, recvcount, 0, r};
    int code = MPI_SUCCESS;
    if (g->rank != root)
        to = (struct blocks_of){0};
    else {
        if (recvbuf != MPI_IN_PLACE)
            code = own_block(g, &to, &from);
        from = (struct blocks_of){0};
    }
    return code ? code : exchange(g, &to, &from, root);
}

#endif
