/* Neighbourhood collectives, MPI-5 section 8.6: on grids, graphs and distributed graphs, in all forms.
 *
 * Every block travels along an edge, which has a number that sender and receiver know; the numbers tell what must be
 * where. */
#include "limosa_test.h"

#define MOST 64

/* What one process has: for each block its edge, or -1 if there is no neighbour, and the rank at its far end. */
typedef struct {
    MPI_Comm comm;
    int in, out;
    int in_edge[MOST], in_rank[MOST], out_edge[MOST];
} place;

static int value(int edge, int i)
{
    return edge * 1009 + i;
}

/* Elements of the block of an edge, where they differ. */
static int length(int edge, int count)
{
    return edge < 0 ? count : edge % 3 * count / 2;
}

static void check_block(const int *block, int edge, int count, const char *what)
{
    for (int i = 0; i < count; i++) {
        int expected = edge < 0 ? UNTOUCHED : value(edge, i);
        lt_count_check();
        if (block[i] != expected) {
            lt_fail(__FILE__, __LINE__, "%s, edge %d, element %d of %d: expected %d, got %d", what, edge, i, count,
                    expected, block[i]);
            return;
        }
    }
}

/* As even_blocks, with a gap behind each element of what is sent. */
static void blocks_with_gaps(const place *p, int form, int count)
{
    int *send = fresh((size_t)2 * p->out * count), *receive = fresh((size_t)p->in * count);
    MPI_Datatype spread;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    for (int b = 0; b < p->out; b++)
        for (int i = 0; i < count; i++)
            send[2 * (b * count + i)] = value(p->out_edge[b], i);
    COLLECTIVE(form, Neighbor_alltoall, Ineighbor_alltoall, p->comm, send, count, spread, receive, count, MPI_INT);
    for (int b = 0; b < p->in; b++)
        check_block(receive + b * count, p->in_edge[b], count, "alltoall with gaps");
    OK(MPI_Type_free(&spread));
    free(send);
    free(receive);
}

static void even_blocks(const place *p, int form, int count)
{
    int *send = fresh((size_t)p->out * count), *receive = fresh((size_t)p->in * count);
    for (int b = 0; b < p->out; b++)
        for (int i = 0; i < count; i++)
            send[b * count + i] = value(p->out_edge[b], i);
    COLLECTIVE(form, Neighbor_alltoall, Ineighbor_alltoall, p->comm, send, count, MPI_INT, receive, count, MPI_INT);
    for (int b = 0; b < p->in; b++)
        check_block(receive + b * count, p->in_edge[b], count, "alltoall");
    CHECK_INT(receive[p->in * count], UNTOUCHED);
    free(send);
    free(receive);

    /* What each rank gets of this process; the receiver has gaps between elements. */
    int rank;
    MPI_Comm_rank(p->comm, &rank);
    send = fresh(count);
    receive = fresh((size_t)p->in * count);
    for (int i = 0; i < count; i++)
        send[i] = value(rank, i);
    COLLECTIVE(form, Neighbor_allgather, Ineighbor_allgather, p->comm, send, count, MPI_INT, receive, count, MPI_INT);
    for (int b = 0; b < p->in; b++)
        check_block(receive + b * count, p->in_edge[b] < 0 ? -1 : p->in_rank[b], count, "allgather");
    free(receive);

    int counts[MOST], displs[MOST];
    receive = fresh((size_t)p->in * (count + 2));
    for (int b = 0; b < p->in; b++) {
        counts[b] = count;
        displs[b] = (p->in - 1 - b) * (count + 2);
    }
    COLLECTIVE(form, Neighbor_allgatherv, Ineighbor_allgatherv, p->comm, send, count, MPI_INT, receive, counts, displs,
               MPI_INT);
    for (int b = 0; b < p->in; b++) {
        check_block(receive + displs[b], p->in_edge[b] < 0 ? -1 : p->in_rank[b], count, "allgatherv");
        CHECK_INT(receive[displs[b] + count], UNTOUCHED);
    }
    free(send);
    free(receive);
}

static void uneven_blocks(const place *p, int form, int count)
{
    int sends[MOST], receives[MOST], from[MOST], to[MOST], room = count + 3;
    MPI_Aint from_bytes[MOST], to_bytes[MOST];
    MPI_Datatype send_types[MOST], receive_types[MOST], spread;
    int *send = fresh((size_t)p->out * room), *receive = fresh((size_t)p->in * room), *wide = fresh(2u * p->in * room);
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread));
    OK(MPI_Type_commit(&spread));
    for (int b = 0; b < p->out; b++) {
        sends[b] = length(p->out_edge[b], count);
        from[b] = (p->out - 1 - b) * room;
        from_bytes[b] = (MPI_Aint)sizeof(int) * from[b];
        send_types[b] = MPI_INT;
        for (int i = 0; i < sends[b]; i++)
            send[from[b] + i] = value(p->out_edge[b], i);
    }
    for (int b = 0; b < p->in; b++) {
        receives[b] = length(p->in_edge[b], count);
        to[b] = b * room;
        to_bytes[b] = (MPI_Aint)sizeof(int) * 2 * to[b];
        receive_types[b] = spread;
    }
    COLLECTIVE(form, Neighbor_alltoallv, Ineighbor_alltoallv, p->comm, send, sends, from, MPI_INT, receive, receives,
               to, MPI_INT);
    for (int b = 0; b < p->in; b++) {
        check_block(receive + to[b], p->in_edge[b], receives[b], "alltoallv");
        CHECK_INT(receive[to[b] + receives[b]], UNTOUCHED);
    }
    COLLECTIVE(form, Neighbor_alltoallw, Ineighbor_alltoallw, p->comm, send, sends, from_bytes, send_types, wide,
               receives, to_bytes, receive_types);
    for (int b = 0; b < p->in; b++) {
        int *block = fresh(receives[b]);
        for (int i = 0; i < receives[b]; i++) {
            block[i] = wide[2 * (to[b] + i)];
            CHECK_INT(wide[2 * (to[b] + i) + 1], UNTOUCHED);
        }
        check_block(block, p->in_edge[b], receives[b], "alltoallw");
        free(block);
    }
    OK(MPI_Type_free(&spread));
    free(send);
    free(receive);
    free(wide);
}

static void every_operation(const place *p)
{
    static const int counts[] = {0, 1, 50, 3000, 40000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int form = 0; form < 3; form++) {
            even_blocks(p, form, counts[c]);
            blocks_with_gaps(p, form, counts[c]);
            uneven_blocks(p, form, counts[c]);
        }
    }
}

/* The block that goes one way comes from the opposite side: also where both neighbours are the same process, or this
 * one. */
static void grid(int ndims, int *dims, const int *periods)
{
    place p = {.in = 2 * ndims, .out = 2 * ndims};
    int rank;
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 1, &p.comm));
    if (p.comm == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_rank(p.comm, &rank));
    for (int d = 0; d < ndims; d++) {
        int peers[2];
        OK(MPI_Cart_shift(p.comm, d, 1, &peers[0], &peers[1]));
        for (int way = 0; way < 2; way++) {
            int block = 2 * d + way, is_there = peers[way] != MPI_PROC_NULL;
            p.in_rank[block] = peers[way];
            p.out_edge[block] = is_there ? rank * 2 * ndims + block : -1;
            p.in_edge[block] = is_there ? peers[way] * 2 * ndims + (block ^ 1) : -1;
        }
    }
    every_operation(&p);
    OK(MPI_Comm_free(&p.comm));
}

static void on_grids(void)
{
    int line[] = {lt_size}, square[] = {0, 0}, single[] = {1, 0, 1}, pair[] = {2, 0};
    grid(1, line, (int[]){0});
    grid(1, line, (int[]){1});
    OK(MPI_Dims_create(lt_size, 2, square));
    grid(2, square, (int[]){1, 0});
    grid(2, square, (int[]){1, 1});
    OK(MPI_Dims_create(lt_size, 3, single));
    grid(3, single, (int[]){1, 1, 0});
    if (lt_size % 2 == 0) {
        OK(MPI_Dims_create(lt_size, 2, pair));
        grid(2, pair, (int[]){1, 1});
    }
    if (lt_rank == 0 || lt_size > 1)
        grid(0, NULL, NULL);
}

/* A random graph with loops and repeated edges, of which each process knows its own ends. */
static place random_graph(unsigned seed, int edges)
{
    unsigned state = seed * 77 + 5;
    place p = {0};
    int from[MOST], to[MOST];
    for (int edge = 0; edge < edges; edge++) {
        state = state * 1103515245 + 12345;
        int source = (state >> 16) % lt_size;
        state = state * 1103515245 + 12345;
        int destination = (state >> 16) % lt_size;
        if (source == lt_rank) {
            to[p.out] = destination;
            p.out_edge[p.out++] = edge;
        }
        if (destination == lt_rank) {
            from[p.in] = p.in_rank[p.in] = source;
            p.in_edge[p.in++] = edge;
        }
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, p.in, from, MPI_UNWEIGHTED, p.out, to, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &p.comm));
    return p;
}

static void on_distributed_graphs(void)
{
    for (unsigned seed = 0; seed < 6; seed++) {
        place p = random_graph(seed, 4 * (int)seed);
        every_operation(&p);
        OK(MPI_Comm_free(&p.comm));
    }
}

/* How many elements go over an edge in a round: from none to more than any short way takes. */
static int elements(unsigned seed, int edge, int round)
{
    static const int some[] = {0, 0, 1, 2, 5, 30, 200, 900, 2100, 5000, 20000, 45000};
    unsigned state = (seed * 1009 + edge) * 1009 + round;
    state = state * 1103515245 + 12345;
    state = state * 1103515245 + 12345;
    int most = round % 8 ? 9 : 12;
    return some[(state >> 16) % most];
}

/* An exchange of blocks of any lengths. Every other one has gaps where it is sent from. */
typedef struct {
    const place *p;
    int round, step;
    int sends[MOST], receives[MOST], from[MOST], to[MOST];
    MPI_Aint from_bytes[MOST], to_bytes[MOST];
    MPI_Datatype types[MOST], ints[MOST], spread;
    int *send, *receive;
    MPI_Request request;
} transfer;

static transfer *prepare(const place *p, unsigned seed, int round)
{
    transfer *t = lt_alloc(sizeof *t);
    int sent = 0, received = 0;
    t->p = p;
    t->round = round;
    t->step = 1 + round % 2;
    t->request = MPI_REQUEST_NULL;
    OK(MPI_Type_create_resized(MPI_INT, 0, t->step * (MPI_Aint)sizeof(int), &t->spread));
    OK(MPI_Type_commit(&t->spread));
    for (int b = 0; b < p->out; b++) {
        t->sends[b] = elements(seed, p->out_edge[b], round);
        t->from[b] = sent;
        t->from_bytes[b] = sent * t->step * (MPI_Aint)sizeof(int);
        t->types[b] = t->spread;
        sent += t->sends[b] + 1;
    }
    for (int b = p->in - 1; b >= 0; b--) {
        t->receives[b] = elements(seed, p->in_edge[b], round);
        t->to[b] = received;
        t->to_bytes[b] = received * (MPI_Aint)sizeof(int);
        t->ints[b] = MPI_INT;
        received += t->receives[b] + 1;
    }
    t->send = fresh((size_t)sent * t->step);
    t->receive = fresh(received);
    return t;
}

/* What is sent in one of several starts. */
static void fill(transfer *t, int start)
{
    for (int b = 0; b < t->p->out; b++)
        for (int i = 0; i < t->sends[b]; i++)
            t->send[(t->from[b] + i) * t->step] = value(t->p->out_edge[b] + t->round + start, i);
}

static void check_transfer(const transfer *t, int start)
{
    for (int b = 0; b < t->p->in; b++) {
        int *block = t->receive + t->to[b];
        check_block(block, t->p->in_edge[b] + t->round + start, t->receives[b], "blocks of any lengths");
        CHECK_INT(block[t->receives[b]], UNTOUCHED);
    }
}

static void finish(transfer *t)
{
    OK(MPI_Type_free(&t->spread));
    free(t->send);
    free(t->receive);
    free(t);
}

static void exchange(const place *p, unsigned seed, int round)
{
    transfer *t = prepare(p, seed, round);
    fill(t, 0);
    if (round % 3)
        OK(MPI_Neighbor_alltoallv(t->send, t->sends, t->from, t->spread, t->receive, t->receives, t->to, MPI_INT,
                                  p->comm));
    else
        OK(MPI_Neighbor_alltoallw(t->send, t->sends, t->from_bytes, t->types, t->receive, t->receives, t->to_bytes,
                                  t->ints, p->comm));
    check_transfer(t, 0);
    finish(t);
}

/* Many exchanges in a row, with nothing between them that keeps the processes together. */
static void random_lengths_in_a_row(void)
{
    for (unsigned seed = 1; seed < 4; seed++) {
        place p = random_graph(seed, 3 * (int)seed * lt_size > 24 ? 24 : 3 * (int)seed * lt_size);
        for (int round = 0; round < 150; round++)
            exchange(&p, seed, round);
        OK(MPI_Comm_free(&p.comm));
    }
}

static void begin(transfer *t)
{
    if (t->round % 3)
        OK(MPI_Ineighbor_alltoallv(t->send, t->sends, t->from, t->spread, t->receive, t->receives, t->to, MPI_INT,
                                   t->p->comm, &t->request));
    else
        OK(MPI_Ineighbor_alltoallw(t->send, t->sends, t->from_bytes, t->types, t->receive, t->receives, t->to_bytes,
                                   t->ints, t->p->comm, &t->request));
}

/* Exchanges of any lengths, up to twelve of them under way on each process. */
static void random_lengths_in_flight(void)
{
    enum { ROUNDS = 100, WINDOW = 12 };
    for (unsigned seed = 1; seed < 4; seed++) {
        place p = random_graph(seed, 3 * (int)seed * lt_size > 24 ? 24 : 3 * (int)seed * lt_size);
        transfer *under_way[WINDOW] = {NULL};
        for (int round = 0; round < ROUNDS + WINDOW; round++) {
            transfer **t = &under_way[round % WINDOW];
            if (*t != NULL) {
                OK(MPI_Wait(&(*t)->request, MPI_STATUS_IGNORE));
                check_transfer(*t, 0);
                finish(*t);
                *t = NULL;
            }
            if (round < ROUNDS) {
                *t = prepare(&p, seed, round);
                fill(*t, 0);
                begin(*t);
                /* The processes look at different ones meanwhile. */
                transfer *other = under_way[(round * 5 + lt_rank) % WINDOW];
                int is_done;
                if (other != NULL)
                    OK(MPI_Request_get_status(other->request, &is_done, MPI_STATUS_IGNORE));
            }
        }
        OK(MPI_Comm_free(&p.comm));
    }
}

/* Persistent exchanges of any lengths, which each process starts in another order. */
static void persistent_ones_start_again_in_any_order(void)
{
    enum { OPERATIONS = 9, STARTS = 12 };
    place p = random_graph(3, 5 * lt_size > 30 ? 30 : 5 * lt_size);
    transfer *all[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        transfer *t = all[i] = prepare(&p, 9, i);
        if (i % 3)
            OK(MPI_Neighbor_alltoallv_init(t->send, t->sends, t->from, t->spread, t->receive, t->receives, t->to,
                                           MPI_INT, p.comm, MPI_INFO_NULL, &t->request));
        else
            OK(MPI_Neighbor_alltoallw_init(t->send, t->sends, t->from_bytes, t->types, t->receive, t->receives,
                                           t->to_bytes, t->ints, p.comm, MPI_INFO_NULL, &t->request));
    }
    for (int start = 0; start < STARTS; start++) {
        for (int i = 0; i < OPERATIONS; i++) {
            transfer *t = all[(i * (1 + lt_rank % 2) + start + lt_rank) % OPERATIONS];
            fill(t, start);
            OK(MPI_Start(&t->request));
        }
        for (int i = 0; i < OPERATIONS; i++) {
            transfer *t = all[(i + lt_rank) % OPERATIONS];
            OK(MPI_Wait(&t->request, MPI_STATUS_IGNORE));
            check_transfer(t, start);
        }
    }
    for (int i = 0; i < OPERATIONS; i++) {
        OK(MPI_Request_free(&all[i]->request));
        finish(all[i]);
    }
    OK(MPI_Comm_free(&p.comm));
}

/* So many blocks between two processes that not even what is said about them fits a short way. */
static void many_blocks(MPI_Comm comm, int edges)
{
    int *counts = lt_alloc(sizeof(int) * edges), *displs = lt_alloc(sizeof(int) * edges), bytes = 0, n, unused,
        weighted;
    int topology, peer = -1;
    OK(MPI_Topo_test(comm, &topology));
    if (topology == MPI_GRAPH) {
        OK(MPI_Graph_neighbors_count(comm, lt_rank, &n));
    } else {
        OK(MPI_Dist_graph_neighbors_count(comm, &n, &unused, &weighted));
    }
    if (n > 0)
        peer = lt_rank ^ 1;
    for (int b = 0; b < edges; b++) {
        counts[b] = b % 4;
        displs[b] = bytes;
        bytes += counts[b];
    }
    for (int form = 0; form < 3; form++) {
        int *send = fresh(bytes), *receive = fresh(bytes);
        for (int i = 0; i < bytes; i++)
            send[i] = value(lt_rank, i);
        COLLECTIVE(form, Neighbor_alltoallv, Ineighbor_alltoallv, comm, send, counts, displs, MPI_INT, receive, counts,
                   displs, MPI_INT);
        check_block(receive, peer, bytes, "many blocks");
        free(send);
        free(receive);
    }
    free(counts);
    free(displs);
}

static void more_blocks_than_lines_fit(void)
{
    enum { EDGES = 3000 };
    int *index = lt_alloc(sizeof(int) * lt_size), *edges = lt_alloc(sizeof(int) * EDGES * lt_size), n = 0;
    int *ends = lt_alloc(sizeof(int) * EDGES), peer = lt_rank ^ 1, mine = peer < lt_size ? EDGES : 0;
    MPI_Comm comm;
    for (int r = 0; r < lt_size; r++) {
        for (int b = 0; b < EDGES && (r ^ 1) < lt_size; b++)
            edges[n++] = r ^ 1;
        index[r] = n;
    }
    for (int b = 0; b < EDGES; b++)
        ends[b] = peer;
    OK(MPI_Graph_create(MPI_COMM_WORLD, lt_size, index, edges, 0, &comm));
    many_blocks(comm, EDGES);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, mine, ends, MPI_UNWEIGHTED, mine, ends, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &comm));
    many_blocks(comm, EDGES);
    OK(MPI_Comm_free(&comm));
    free(index);
    free(edges);
    free(ends);
}

/* A star with a loop at its centre, and an edge twice. */
static void on_graphs(void)
{
    int *index = malloc(sizeof(int) * lt_size), edges[4 * 64], n = 0, rank;
    edges[n++] = 0;
    for (int r = 1; r < lt_size; r++) {
        edges[n++] = r;
        if (r == 1)
            edges[n++] = r;
    }
    index[0] = n;
    for (int r = 1; r < lt_size; r++) {
        edges[n++] = 0;
        if (r == 1)
            edges[n++] = 0;
        index[r] = n;
    }
    place p = {0};
    OK(MPI_Graph_create(MPI_COMM_WORLD, lt_size, index, edges, 1, &p.comm));
    OK(MPI_Comm_rank(p.comm, &rank));
    OK(MPI_Graph_neighbors_count(p.comm, rank, &p.in));
    OK(MPI_Graph_neighbors(p.comm, rank, MOST, p.in_rank));
    p.out = p.in;
    for (int b = 0, repeated = 0; b < p.in; b++) {
        repeated = b > 0 && p.in_rank[b] == p.in_rank[b - 1];
        p.in_edge[b] = (p.in_rank[b] * lt_size + rank) * 2 + repeated;
        p.out_edge[b] = (rank * lt_size + p.in_rank[b]) * 2 + repeated;
    }
    every_operation(&p);
    OK(MPI_Comm_free(&p.comm));

    /* Edges in one direction only: no rank waits, all get the error. */
    if (lt_size > 1) {
        int got = 0, one_way = 1;
        for (int r = 0; r < lt_size; r++)
            index[r] = 1;
        OK(MPI_Graph_create(MPI_COMM_WORLD, lt_size, index, &one_way, 0, &p.comm));
        FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, p.comm));
        OK(MPI_Comm_free(&p.comm));
    }
    free(index);
}

/* Large counts, and several operations at once on one communicator. */
static void large_counts_and_several_at_once(void)
{
    MPI_Comm comm;
    int periodic = 1, left, right;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &lt_size, &periodic, 0, &comm));
    OK(MPI_Cart_shift(comm, 0, 1, &left, &right));
    int send[] = {2 * lt_rank, 2 * lt_rank + 1}, receive[2] = {-1, -1};
    OK(MPI_Neighbor_alltoall_c(send, 1, MPI_INT, receive, 1, MPI_INT, comm));
    CHECK(receive[0] == 2 * left + 1 && receive[1] == 2 * right);
    MPI_Count counts[] = {1, 1};
    MPI_Aint displs[] = {1, 0}, bytes[] = {sizeof(int), 0};
    MPI_Datatype types[] = {MPI_INT, MPI_INT};
    OK(MPI_Neighbor_alltoallv_c(send, counts, displs, MPI_INT, receive, counts, displs, MPI_INT, comm));
    CHECK(receive[1] == 2 * left && receive[0] == 2 * right + 1);
    OK(MPI_Neighbor_alltoallw_c(send, counts, bytes, types, receive, counts, bytes, types, comm));
    CHECK(receive[1] == 2 * left && receive[0] == 2 * right + 1);
    /* Displacements are addresses. */
    MPI_Aint from[2], to[2];
    for (int b = 0; b < 2; b++) {
        OK(MPI_Get_address(&send[b], &from[b]));
        OK(MPI_Get_address(&receive[1 - b], &to[b]));
        receive[b] = -1;
    }
    int ones[] = {1, 1};
    OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types, comm));
    CHECK(receive[1] == 2 * left + 1 && receive[0] == 2 * right);
    OK(MPI_Neighbor_allgather_c(&lt_rank, 1, MPI_INT, receive, 1, MPI_INT, comm));
    CHECK(receive[0] == left && receive[1] == right);
    OK(MPI_Neighbor_allgatherv_c(&lt_rank, 1, MPI_INT, receive, counts, displs, MPI_INT, comm));
    CHECK(receive[1] == left && receive[0] == right);

    enum { N = 20 };
    int sends[N][2], receives[N][2];
    MPI_Request requests[N];
    for (int i = 0; i < N; i++) {
        sends[i][0] = 1000 * i + 2 * lt_rank;
        sends[i][1] = 1000 * i + 2 * lt_rank + 1;
        OK(MPI_Ineighbor_alltoall(sends[i], 1, MPI_INT, receives[i], 1, MPI_INT, comm, &requests[i]));
    }
    OK(MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm));
    OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(receives[i][0] == 1000 * i + 2 * left + 1 && receives[i][1] == 1000 * i + 2 * right);
    CHECK(receive[0] == 2 * left + 1 && receive[1] == 2 * right);
    OK(MPI_Comm_free(&comm));
}

static void wrong_use_is_refused(void)
{
    int send[4] = {0}, receive[4];
    MPI_Request request;
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Ineighbor_allgather(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD, &request));
    MPI_Comm comm;
    int periodic = 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &lt_size, &periodic, 0, &comm));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, receive, 1, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(receive, 1, MPI_INT, receive, 1, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgather(receive + 1, 1, MPI_INT, receive, 1, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(NULL, 1, MPI_INT, receive, 1, MPI_INT, comm));
    FAILS(MPI_ERR_COUNT, MPI_Neighbor_alltoall(send, -1, MPI_INT, receive, 1, MPI_INT, comm));
    FAILS(MPI_ERR_TYPE, MPI_Neighbor_alltoall(send, 1, MPI_DATATYPE_NULL, receive, 1, MPI_INT, comm));
    int negative[] = {1, -1}, displs[] = {0, 1};
    FAILS(MPI_ERR_COUNT, MPI_Neighbor_allgatherv(send, 1, MPI_INT, receive, negative, displs, MPI_INT, comm));
    FAILS(MPI_ERR_ARG, MPI_Neighbor_allgatherv(send, 1, MPI_INT, receive, NULL, displs, MPI_INT, comm));
    FAILS(MPI_ERR_COMM, MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_NULL));
    int ones[] = {1, 1};
    MPI_Aint near[] = {0, 8};
    MPI_Datatype types[] = {MPI_INT, MPI_INT};
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoallw(send, ones, near, types, NULL, ones, near, types, comm));
    /* All is as before. */
    OK(MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm));
    /* Blocks of different lengths. */
    FAILS(MPI_ERR_TRUNCATE, MPI_Neighbor_alltoall(send, 2, MPI_INT, receive, 1, MPI_INT, comm));
    OK(MPI_Barrier(comm));
    if (lt_size > 1) {
        OK(MPI_Ineighbor_alltoall(send, 2, MPI_INT, receive, 1, MPI_INT, comm, &request));
        FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Ineighbor_allgather(send, 2, MPI_INT, receive, 1, MPI_INT, comm, &request));
        FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
        int twos[] = {2, 2};
        OK(MPI_Neighbor_alltoallv_init(send, twos, displs, MPI_INT, receive, ones, displs, MPI_INT, comm, MPI_INFO_NULL,
                                       &request));
        for (int start = 0; start < 2; start++) {
            OK(MPI_Start(&request));
            FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&request));
        OK(MPI_Ineighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
}

LT_MAIN("neighbour", TEST(on_grids), TEST(on_distributed_graphs), TEST(random_lengths_in_a_row),
        TEST(random_lengths_in_flight), TEST(persistent_ones_start_again_in_any_order),
        TEST(more_blocks_than_lines_fit), TEST(on_graphs), TEST(large_counts_and_several_at_once),
        TEST(wrong_use_is_refused))
