/* Persistent collectives of which ranks contribute different lengths, around the sizes at which these are left in
 * slots, in large slots, or lent (MPI-5 sections 6.13 and 8.9). Each is started several times with other data. */
#include "limosa_test.h"

enum { STARTS = 5, LENGTHS = 14 };
static const int lengths[LENGTHS] = {0, 1, 900, 1024, 4000, 4090, 4096, 4097, 8192, 10000, 16000, 32768, 33000, 70000};

/* Bytes that rank `from` sends to rank `to` in a case. */
static int length(int which, int from, int to)
{
    return lengths[(which + 3 * from + 5 * to) % LENGTHS];
}

static char byte_of(int from, int to, int start, int at)
{
    return (char)(31 * from + 17 * to + 7 * start + at);
}

static void fill(char *place, int n, int from, int to, int start)
{
    for (int i = 0; i < n; i++)
        place[i] = byte_of(from, to, start, i);
}

static int is_filled(const char *place, int n, int from, int to, int start)
{
    for (int i = 0; i < n; i++)
        if (place[i] != byte_of(from, to, start, i))
            return 0;
    return 1;
}

/* Blocks in sequence, in a new buffer. */
static char *lay_out(int blocks, const int *counts, int *places)
{
    int at = 0;
    for (int i = 0; i < blocks; i++) {
        places[i] = at;
        at += counts[i] + 1;
    }
    char *buffer = calloc(1, (size_t)at + 1);
    CHECK(buffer != NULL);
    return buffer;
}

static void alltoallv_gatherv_scatterv(void)
{
    int out[lt_size], in[lt_size], out_at[lt_size], in_at[lt_size];
    for (int which = 0; which < LENGTHS; which++) {
        for (int i = 0; i < lt_size; i++) {
            out[i] = length(which, lt_rank, i);
            in[i] = length(which, i, lt_rank);
        }
        char *sent = lay_out(lt_size, out, out_at), *got = lay_out(lt_size, in, in_at);
        int root = which % lt_size, own = length(which, lt_rank, root), part = length(which, root, lt_rank);
        char *given = malloc((size_t)own + 1), *taken = malloc((size_t)part + 1);
        MPI_Request requests[3];
        OK(MPI_Alltoallv_init(sent, out, out_at, MPI_BYTE, got, in, in_at, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &requests[0]));
        OK(MPI_Scatterv_init(sent, out, out_at, MPI_BYTE, taken, part, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL,
                             &requests[1]));
        for (int start = 0; start < STARTS; start++) {
            for (int i = 0; i < lt_size; i++)
                fill(sent + out_at[i], out[i], lt_rank, i, start);
            OK(MPI_Startall(2, requests));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            for (int i = 0; i < lt_size; i++)
                CHECK(is_filled(got + in_at[i], in[i], i, lt_rank, start));
            CHECK(is_filled(taken, part, root, lt_rank, start));
        }
        /* What each has for the root, to the places of what the root has got from all. */
        OK(MPI_Gatherv_init(given, own, MPI_BYTE, got, in, in_at, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &requests[2]));
        for (int start = 0; start < STARTS; start++) {
            fill(given, own, lt_rank, root, 50 + start);
            OK(MPI_Start(&requests[2]));
            OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
            for (int i = 0; lt_rank == root && i < lt_size; i++)
                CHECK(is_filled(got + in_at[i], in[i], i, root, 50 + start));
        }
        for (int i = 0; i < 3; i++)
            OK(MPI_Request_free(&requests[i]));
        free(sent);
        free(got);
        free(given);
        free(taken);
    }
}

/* Each rank sends to the next one twice, and to the one before. */
static void blocks_of_a_distributed_graph(void)
{
    int next = (lt_rank + 1) % lt_size, previous = (lt_rank + lt_size - 1) % lt_size;
    int to[3] = {next, previous, next}, from[3] = {previous, next, previous};
    MPI_Comm graph;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, MPI_UNWEIGHTED, 3, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &graph));
    for (int which = 0; which < LENGTHS; which++) {
        int out[3], in[3], out_at[3], in_at[3];
        for (int i = 0; i < 3; i++) {
            out[i] = length(which + (i == 2), lt_rank, to[i]);
            in[i] = length(which + (i == 2), from[i], lt_rank);
        }
        char *sent = lay_out(3, out, out_at), *got = lay_out(3, in, in_at);
        MPI_Request request;
        OK(MPI_Neighbor_alltoallv_init(sent, out, out_at, MPI_BYTE, got, in, in_at, MPI_BYTE, graph, MPI_INFO_NULL,
                                       &request));
        for (int start = 0; start < STARTS; start++) {
            for (int i = 0; i < 3; i++)
                fill(sent + out_at[i], out[i], lt_rank, i, start);
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int i = 0; i < 3; i++)
                CHECK(is_filled(got + in_at[i], in[i], from[i], i, start));
        }
        OK(MPI_Request_free(&request));
        free(sent);
        free(got);
    }
    OK(MPI_Comm_free(&graph));
}

/* Blocks of one length on a ring, of which the receivers know the places. */
static void even_blocks_of_a_ring(void)
{
    MPI_Comm ring;
    int extent = lt_size, around = 1, sides[2];
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &around, 0, &ring));
    OK(MPI_Cart_shift(ring, 0, 1, &sides[0], &sides[1]));
    for (int which = 0; which < LENGTHS; which++) {
        int n = lengths[which];
        char *sent = malloc(2 * (size_t)n + 1), *got = malloc(2 * (size_t)n + 1), *same = malloc(2 * (size_t)n + 1);
        MPI_Request requests[2];
        OK(MPI_Neighbor_alltoall_init(sent, n, MPI_BYTE, got, n, MPI_BYTE, ring, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Neighbor_allgather_init(sent, n, MPI_BYTE, same, n, MPI_BYTE, ring, MPI_INFO_NULL, &requests[1]));
        for (int start = 0; start < STARTS; start++) {
            fill(sent, n, lt_rank, 0, start);
            fill(sent + n, n, lt_rank, 1, start);
            /* In different orders on different ranks. */
            OK(MPI_Start(&requests[lt_rank % 2]));
            OK(MPI_Start(&requests[(lt_rank + 1) % 2]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            for (int side = 0; side < 2; side++) {
                CHECK(is_filled(got + side * n, n, sides[side], 1 - side, start));
                CHECK(is_filled(same + side * n, n, sides[side], 0, start));
            }
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
        free(sent);
        free(got);
        free(same);
    }
    OK(MPI_Comm_free(&ring));
}

LT_MAIN("coll_persistent_lengths", TEST(alltoallv_gatherv_scatterv), TEST(blocks_of_a_distributed_graph),
        TEST(even_blocks_of_a_ring))
