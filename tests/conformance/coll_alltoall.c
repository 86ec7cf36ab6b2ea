/* All-to-all exchanges: MPI-5 section 6.8. */
#include "coll.h"

static const int few_counts[] = {0, 1, 7, 1000, 20000};

static void alltoall(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 6; way++) {
            int n = few_counts[c], from = way & 1, to = way >> 1 & 1, in_place = way == 4;
            int *out = buffer(from, (long)n * size), *in = buffer(to, (long)n * size);
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < n; i++)
                    put(in_place ? in : out, in_place ? to : from, (long)r * n + i, value(rank, r, i));
            }
            OK(way == 5 ? MPI_Alltoall_c(out, n, shapes[from], in, n, shapes[to], comm)
                        : MPI_Alltoall(in_place ? MPI_IN_PLACE : out, in_place ? -1 : n,
                                       in_place ? MPI_DATATYPE_NULL : shapes[from], in, n, shapes[to], comm));
            for (int r = 0; r < size; r++)
                GOT_BLOCK(in, to, (long)r * n, n, r, rank);
            GOT_GAP(in, 0, ((long)n * size) << to, 2);
            free(out);
            free(in);
        }
    }
}

/* What rank a sends to rank b; some pairs exchange nothing, and in general a to b differs from b to a. */
static int amount(int n, int a, int b)
{
    return (a + 2 * b) % 4 == 3 ? 0 : n * (a + 1) / size / (b + 1);
}

static void alltoallv(void)
{
    int out_n[256], out_at[256], in_n[256], in_at[256];
    MPI_Count out_n_c[256], in_n_c[256];
    MPI_Aint out_at_c[256], in_at_c[256];
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 5; way++) {
            int from = way & 1, to = way >> 1 & 1;
            long out_all = 0, in_all = 0;
            for (int r = size - 1; r >= 0; r--) {
                out_n_c[r] = out_n[r] = amount(few_counts[c], rank, r);
                in_n_c[r] = in_n[r] = amount(few_counts[c], r, rank);
                out_at_c[r] = out_at[r] = (int)out_all;
                out_all += out_n[r] + 1;
            }
            for (int r = 0; r < size; r++) {
                in_at_c[r] = in_at[r] = (int)in_all;
                in_all += in_n[r] + 2;
            }
            int *out = buffer(from, out_all), *in = buffer(to, in_all);
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < out_n[r]; i++)
                    put(out, from, out_at[r] + i, value(rank, r, i));
            }
            OK(way == 4 ? MPI_Alltoallv_c(out, out_n_c, out_at_c, shapes[from], in, in_n_c, in_at_c, shapes[to], comm)
                        : MPI_Alltoallv(out, out_n, out_at, shapes[from], in, in_n, in_at, shapes[to], comm));
            for (int r = 0; r < size; r++) {
                GOT_BLOCK(in, to, in_at[r], in_n[r], r, rank);
                GOT_GAP(in, to, in_at[r] + in_n[r], 2);
            }
            free(out);
            free(in);
        }
    }
}

/* In place the amounts are symmetric. */
static int symmetric(int n, int a, int b)
{
    return n * ((a + b) % 3) / 2;
}

static void alltoallv_in_place(void)
{
    for (int c = 0; c < N_COUNTS; c++) {
        for (int shape = 0; shape < 2; shape++) {
            int n[256], at[256];
            long all = 0;
            for (int r = 0; r < size; r++) {
                n[r] = symmetric(few_counts[c], rank, r);
                at[r] = (int)all;
                all += n[r] + 1;
            }
            int *in = buffer(shape, all);
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < n[r]; i++)
                    put(in, shape, at[r] + i, value(rank, r, i));
            }
            OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, n, at, shapes[shape], comm));
            for (int r = 0; r < size; r++) {
                GOT_BLOCK(in, shape, at[r], n[r], r, rank);
                GOT_GAP(in, shape, at[r] + n[r], 1);
            }
            free(in);
        }
    }
}

/* A type, a count and a place in bytes for each partner: even partners get plain integers, odd ones strided ones. */
static void alltoallw(void)
{
    int out_n[256], out_at[256], in_n[256], in_at[256];
    MPI_Datatype out_types[256], in_types[256];
    MPI_Count out_n_c[256], in_n_c[256];
    MPI_Aint out_at_c[256], in_at_c[256];
    for (int c = 0; c < N_COUNTS; c++) {
        for (int way = 0; way < 2; way++) {
            long out_all = 0, in_all = 0;
            for (int r = 0; r < size; r++) {
                out_n_c[r] = out_n[r] = amount(few_counts[c], rank, r);
                in_n_c[r] = in_n[r] = amount(few_counts[c], r, rank);
                out_types[r] = shapes[r % 2];
                in_types[r] = shapes[(r + rank + 1) % 2];
                out_at_c[r] = out_at[r] = (int)(out_all * (long)sizeof(int));
                in_at_c[r] = in_at[r] = (int)(in_all * (long)sizeof(int));
                out_all += 2 * out_n[r] + 2;
                in_all += 2 * in_n[r] + 2;
            }
            int *out = buffer(0, out_all), *in = buffer(0, in_all);
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < out_n[r]; i++)
                    put(out + out_at[r] / 4, r % 2, i, value(rank, r, i));
            }
            OK(way ? MPI_Alltoallw_c(out, out_n_c, out_at_c, out_types, in, in_n_c, in_at_c, in_types, comm)
                   : MPI_Alltoallw(out, out_n, out_at, out_types, in, in_n, in_at, in_types, comm));
            for (int r = 0; r < size; r++) {
                int shape = (r + rank + 1) % 2;
                GOT_BLOCK(in + in_at[r] / 4, shape, 0, in_n[r], r, rank);
                GOT_GAP(in + in_at[r] / 4, 0, (long)in_n[r] << shape, 2);
            }
            free(out);
            free(in);
        }
    }
}

static void alltoallw_in_place(void)
{
    int n[256], at[256];
    MPI_Datatype types[256];
    long all = 0;
    for (int r = 0; r < size; r++) {
        n[r] = symmetric(1000, rank, r);
        at[r] = (int)(all * (long)sizeof(int));
        types[r] = shapes[(rank + r) % 2];
        all += 2 * n[r] + 2;
    }
    int *in = buffer(0, all);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < n[r]; i++)
            put(in + at[r] / 4, (rank + r) % 2, i, value(rank, r, i));
    }
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, n, at, types, comm));
    for (int r = 0; r < size; r++)
        GOT_BLOCK(in + at[r] / 4, (rank + r) % 2, 0, n[r], r, rank);
    free(in);
}

/* A matrix distributed by rows becomes distributed by columns in one call. */
static void transpose(void)
{
    enum { BLOCK = 8 };
    int n = BLOCK * size;
    int *rows = lt_alloc(sizeof(int) * (size_t)(BLOCK * n)), *columns = lt_alloc(sizeof(int) * (size_t)(BLOCK * n));
    MPI_Datatype tile, turned, line;
    OK(MPI_Type_vector(BLOCK, BLOCK, n, MPI_INT, &tile));
    OK(MPI_Type_create_resized(tile, 0, BLOCK * sizeof(int), &turned));
    OK(MPI_Type_commit(&turned));
    OK(MPI_Type_vector(BLOCK, 1, n, MPI_INT, &line));
    MPI_Datatype lines, block;
    OK(MPI_Type_create_hvector(BLOCK, 1, sizeof(int), line, &lines));
    OK(MPI_Type_create_resized(lines, 0, BLOCK * sizeof(int), &block));
    OK(MPI_Type_commit(&block));
    for (int i = 0; i < BLOCK; i++) {
        for (int j = 0; j < n; j++)
            rows[i * n + j] = (rank * BLOCK + i) * 1000 + j;
    }
    OK(MPI_Alltoall(rows, 1, turned, columns, 1, block, comm));
    for (int i = 0; i < BLOCK; i++) {
        for (int j = 0; j < n; j++)
            CHECK_INT(columns[i * n + j], j * 1000 + rank * BLOCK + i);
    }
    OK(MPI_Type_free(&tile));
    OK(MPI_Type_free(&turned));
    OK(MPI_Type_free(&line));
    OK(MPI_Type_free(&lines));
    OK(MPI_Type_free(&block));
    free(rows);
    free(columns);
}

#define ON_ALL(name)                                                                                                   \
    static void name##_on_all(void)                                                                                    \
    {                                                                                                                  \
        on_all(name);                                                                                                  \
    }
ON_ALL(alltoall)
ON_ALL(alltoallv)
ON_ALL(alltoallv_in_place)
ON_ALL(alltoallw)
ON_ALL(alltoallw_in_place)
ON_ALL(transpose)

LT_MAIN("coll_alltoall", TEST(make_shapes), TEST(alltoall_on_all), TEST(alltoallv_on_all),
        TEST(alltoallv_in_place_on_all), TEST(alltoallw_on_all), TEST(alltoallw_in_place_on_all),
        TEST(transpose_on_all), TEST(free_shapes))
