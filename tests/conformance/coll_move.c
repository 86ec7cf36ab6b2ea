/* Barrier, broadcast, gather, scatter, allgather and their v forms: MPI-5 sections 6.3 to 6.7. */
#include "coll.h"

/* No rank leaves a barrier before all have come: each rank reports its arrival to rank 0 first. */
static void barrier(void)
{
    for (int round = 0; round < 20; round++) {
        int token = round;
        MPI_Request *arrivals = lt_alloc(sizeof *arrivals * (size_t)size);
        int *tokens = lt_alloc(sizeof *tokens * (size_t)size);
        if (rank == 0) {
            for (int r = 1; r < size; r++)
                OK(MPI_Irecv(&tokens[r], 1, MPI_INT, r, 7, comm, &arrivals[r - 1]));
        } else {
            OK(MPI_Send(&token, 1, MPI_INT, 0, 7, comm));
        }
        OK(MPI_Barrier(comm));
        if (rank == 0) {
            /* All messages were sent before the barrier, so they are here or on their way: completion needs no other
             * rank. */
            OK(MPI_Waitall(size - 1, arrivals, MPI_STATUSES_IGNORE));
            for (int r = 1; r < size; r++)
                CHECK_INT(tokens[r], round);
        }
        free(arrivals);
        free(tokens);
    }
}

static void bcast(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 3; way++) {
                int n = counts[c], shape = (way + (rank == root)) % 2;
                int *b = buffer(shape, n);
                for (int i = 0; i < n && rank == root; i++)
                    put(b, shape, i, value(root, 0, i));
                OK(way == 2 ? MPI_Bcast_c(b, n, shapes[shape], root, comm)
                            : MPI_Bcast(b, n, shapes[shape], root, comm));
                GOT_BLOCK(b, shape, 0, n, root, 0);
                GOT_GAP(b, 0, (long)n << shape, 2);
                free(b);
            }
        }
    }
}

/* Many broadcasts with changing roots follow each other without any other synchronisation. */
static void bcast_in_a_row(void)
{
    for (int i = 0; i < 300; i++) {
        int root = (i * 7) % size, n = (i * 13) % 50, b[50];
        for (int k = 0; k < n; k++)
            b[k] = rank == root ? value(root, i, k) : 0;
        OK(MPI_Bcast(b, n, MPI_INT, root, comm));
        for (int k = 0; k < n; k++)
            CHECK_INT(b[k], value(root, i, k));
    }
}

static void gather(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 4; way++) {
                int n = counts[c], from = way & 1, to = way >> 1, in_place = way == 2 && rank == root;
                int *out = buffer(from, n), *in = rank == root ? buffer(to, (long)n * size) : NULL;
                for (int i = 0; i < n; i++)
                    put(in_place ? in : out, in_place ? to : from, in_place ? (long)rank * n + i : i,
                        value(rank, 0, i));
                /* Away from the root the receive arguments mean nothing. */
                OK(way == 3 ? MPI_Gather_c(out, n, shapes[from], in, rank == root ? n : -1,
                                           rank == root ? shapes[to] : MPI_DATATYPE_NULL, root, comm)
                            : MPI_Gather(in_place ? MPI_IN_PLACE : out, n, shapes[from], in, rank == root ? n : -1,
                                         rank == root ? shapes[to] : MPI_DATATYPE_NULL, root, comm));
                for (int r = 0; r < size && rank == root; r++)
                    GOT_BLOCK(in, to, (long)r * n, n, r, 0);
                if (rank == root)
                    GOT_GAP(in, 0, ((long)n * size) << to, 2);
                free(out);
                free(in);
            }
        }
    }
}

/* Counts and places that differ from rank to rank: blocks in reverse order with a gap between them. */
static long layout(int n, int *block, int *at)
{
    long place = 0;
    for (int r = size - 1; r >= 0; r--) {
        block[r] = (r % 3 == 2) ? 0 : n * (r + 1) / size;
        at[r] = (int)place;
        place += block[r] + 3;
    }
    return place;
}

static void gatherv(void)
{
    int block[256], at[256];
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 4; way++) {
                int from = way & 1, to = way >> 1, in_place = way == 2 && rank == root;
                long all = layout(counts[c], block, at);
                int n = block[rank], *out = buffer(from, n), *in = rank == root ? buffer(to, all) : NULL;
                MPI_Count block_c[256];
                MPI_Aint at_c[256];
                for (int r = 0; r < size; r++) {
                    block_c[r] = block[r];
                    at_c[r] = at[r];
                }
                for (int i = 0; i < n; i++)
                    put(in_place ? in : out, in_place ? to : from, in_place ? at[rank] + i : i, value(rank, 0, i));
                OK(way == 3
                       ? MPI_Gatherv_c(out, n, shapes[from], in, block_c, at_c, shapes[to], root, comm)
                       : MPI_Gatherv(in_place ? MPI_IN_PLACE : out, n, shapes[from], in, rank == root ? block : NULL,
                                     rank == root ? at : NULL, shapes[to], root, comm));
                for (int r = 0; r < size && rank == root; r++) {
                    GOT_BLOCK(in, to, at[r], block[r], r, 0);
                    GOT_GAP(in, to, at[r] + block[r], 3);
                }
                free(out);
                free(in);
            }
        }
    }
}

static void scatter(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 4; way++) {
                int n = counts[c], from = way & 1, to = way >> 1, in_place = way == 2 && rank == root;
                int *out = rank == root ? buffer(from, (long)n * size) : NULL, *in = buffer(to, n);
                for (int r = 0; r < size && rank == root; r++) {
                    for (int i = 0; i < n; i++)
                        put(out, from, (long)r * n + i, value(root, r, i));
                }
                OK(way == 3 ? MPI_Scatter_c(out, rank == root ? n : -1, rank == root ? shapes[from] : MPI_DATATYPE_NULL,
                                            in, n, shapes[to], root, comm)
                            : MPI_Scatter(out, rank == root ? n : -1, rank == root ? shapes[from] : MPI_DATATYPE_NULL,
                                          in_place ? MPI_IN_PLACE : in, n, shapes[to], root, comm));
                if (in_place)
                    GOT_GAP(in, to, 0, n);
                else
                    GOT_BLOCK(in, to, 0, n, root, rank);
                GOT_GAP(in, 0, (long)n << to, 2);
                for (int r = 0; r < size && rank == root; r++)
                    GOT_BLOCK(out, from, (long)r * n, n, root, r);
                free(out);
                free(in);
            }
        }
    }
}

static void scatterv(void)
{
    int block[256], at[256];
    for (int c = 0; c < N_COUNTS; c++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < 4; way++) {
                int from = way & 1, to = way >> 1, in_place = way == 2 && rank == root;
                long all = layout(counts[c], block, at);
                int n = block[rank], *out = rank == root ? buffer(from, all) : NULL, *in = buffer(to, n);
                MPI_Count block_c[256];
                MPI_Aint at_c[256];
                for (int r = 0; r < size; r++) {
                    block_c[r] = block[r];
                    at_c[r] = at[r];
                    for (int i = 0; i < block[r] && rank == root; i++)
                        put(out, from, at[r] + i, value(root, r, i));
                }
                OK(way == 3 ? MPI_Scatterv_c(out, block_c, at_c, shapes[from], in, n, shapes[to], root, comm)
                            : MPI_Scatterv(out, rank == root ? block : NULL, rank == root ? at : NULL, shapes[from],
                                           in_place ? MPI_IN_PLACE : in, n, shapes[to], root, comm));
                if (!in_place)
                    GOT_BLOCK(in, to, 0, n, root, rank);
                GOT_GAP(in, 0, (long)n << to, 2);
                free(out);
                free(in);
            }
        }
    }
}

static void allgather(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 5; way++) {
            int n = counts[c], from = way & 1, to = way >> 1 & 1, in_place = way == 4;
            int *out = buffer(from, n), *in = buffer(to, (long)n * size);
            for (int i = 0; i < n; i++)
                put(in_place ? in : out, in_place ? to : from, in_place ? (long)rank * n + i : i, value(rank, 0, i));
            OK(way == 3 ? MPI_Allgather_c(out, n, shapes[from], in, n, shapes[to], comm)
                        : MPI_Allgather(in_place ? MPI_IN_PLACE : out, in_place ? -1 : n,
                                        in_place ? MPI_DATATYPE_NULL : shapes[from], in, n, shapes[to], comm));
            for (int r = 0; r < size; r++)
                GOT_BLOCK(in, to, (long)r * n, n, r, 0);
            GOT_GAP(in, 0, ((long)n * size) << to, 2);
            free(out);
            free(in);
        }
    }
}

static void allgatherv(void)
{
    int block[256], at[256];
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 5; way++) {
            int from = way & 1, to = way >> 1 & 1, in_place = way == 4;
            long all = layout(counts[c], block, at);
            int n = block[rank], *out = buffer(from, n), *in = buffer(to, all);
            MPI_Count block_c[256];
            MPI_Aint at_c[256];
            for (int r = 0; r < size; r++) {
                block_c[r] = block[r];
                at_c[r] = at[r];
            }
            for (int i = 0; i < n; i++)
                put(in_place ? in : out, in_place ? to : from, in_place ? at[rank] + i : i, value(rank, 0, i));
            OK(way == 3
                   ? MPI_Allgatherv_c(out, n, shapes[from], in, block_c, at_c, shapes[to], comm)
                   : MPI_Allgatherv(in_place ? MPI_IN_PLACE : out, n, shapes[from], in, block, at, shapes[to], comm));
            for (int r = 0; r < size; r++) {
                GOT_BLOCK(in, to, at[r], block[r], r, 0);
                GOT_GAP(in, to, at[r] + block[r], 3);
            }
            free(out);
            free(in);
        }
    }
}

/* Bytes on one side, the extent of a column at the receiver: columns of ranks gathered into a row-major matrix. */
static void gather_columns(void)
{
    enum { ROWS = 40 };
    MPI_Datatype column, spaced;
    int mine[ROWS], *matrix = lt_alloc(sizeof(int) * ROWS * (size_t)size);
    OK(MPI_Type_vector(ROWS, 1, size, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &spaced));
    OK(MPI_Type_commit(&spaced));
    for (int i = 0; i < ROWS; i++)
        mine[i] = value(rank, 0, i);
    OK(MPI_Allgather(mine, ROWS, MPI_INT, matrix, 1, spaced, comm));
    for (int i = 0; i < ROWS * size; i++)
        CHECK_INT(matrix[i], value(i % size, 0, i / size));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&spaced));
    free(matrix);
}

#define ON_ALL(name)                                                                                                   \
    static void name##_on_all(void)                                                                                    \
    {                                                                                                                  \
        on_all(name);                                                                                                  \
    }
ON_ALL(barrier)
ON_ALL(bcast)
ON_ALL(bcast_in_a_row)
ON_ALL(gather)
ON_ALL(gatherv)
ON_ALL(scatter)
ON_ALL(scatterv)
ON_ALL(allgather)
ON_ALL(allgatherv)
ON_ALL(gather_columns)

LT_MAIN("coll_move", TEST(make_shapes), TEST(barrier_on_all), TEST(bcast_on_all), TEST(bcast_in_a_row_on_all),
        TEST(gather_on_all), TEST(gatherv_on_all), TEST(scatter_on_all), TEST(scatterv_on_all), TEST(allgather_on_all),
        TEST(allgatherv_on_all), TEST(gather_columns_on_all), TEST(free_shapes))
