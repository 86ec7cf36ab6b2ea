/* What the programs for collective operations share: the communicators to run on, counts, and buffers of plain or
 * strided integers.
 *
 * A buffer has a shape: 0 is `int` after `int`, 1 leaves a gap of one `int` behind each. Gaps and everything beyond
 * hold the mark GAP and must keep it. So each side of an operation can use another type with the same signature.
 */
#ifndef LIMOSA_COLL_H
#define LIMOSA_COLL_H

#include "limosa_test.h"
#include <unistd.h>

enum { GAP = -777777777 };

static const int counts[] = {0, 1, 7, 1000, 100000};
enum { N_COUNTS = sizeof counts / sizeof *counts };

static MPI_Comm comm;
static int rank, size;
static MPI_Datatype shapes[2];

static LT_UNUSED void make_shapes(void)
{
    shapes[0] = MPI_INT;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &shapes[1]));
    OK(MPI_Type_commit(&shapes[1]));
}

static LT_UNUSED void free_shapes(void)
{
    OK(MPI_Type_free(&shapes[1]));
}

/* The value number i of what `sender` has for `receiver`. */
static inline LT_UNUSED int value(int sender, int receiver, int i)
{
    return (int)((unsigned)sender * 1000003u + (unsigned)receiver * 10007u + (unsigned)i * 3u + 1u);
}

static LT_UNUSED int *buffer(int shape, long n)
{
    long all = (shape + 1) * n + 2;
    int *b = lt_alloc((size_t)all * sizeof *b);
    for (long i = 0; i < all; i++)
        b[i] = GAP;
    return b;
}

static inline LT_UNUSED void put(int *b, int shape, long at, int v)
{
    b[at << shape] = v;
}

/* Compares value `at` of a buffer; false stops the caller's loop. */
static inline LT_UNUSED int same(const char *file, int line, const int *b, int shape, long at, int expected)
{
    if (b[at << shape] == expected && (!shape || b[(at << shape) + 1] == GAP))
        return 1;
    lt_fail(file, line, "rank %d of %d in the communicator, element %ld: expected %d, got %d, behind it %d", rank, size,
            at, expected, b[at << shape], b[(at << shape) + 1]);
    return 0;
}

/* Values from `at` on are those that `sender` had for `receiver`. */
static LT_UNUSED void got_block(const char *file, int line, const int *b, int shape, long at, int n, int sender,
                                int receiver)
{
    lt_count_check();
    for (int i = 0; i < n; i++) {
        if (!same(file, line, b, shape, at + i, value(sender, receiver, i)))
            return;
    }
}

#define GOT_BLOCK(b, shape, at, n, sender, receiver)                                                                   \
    got_block(__FILE__, __LINE__, (b), (shape), (at), (n), (sender), (receiver))

static LT_UNUSED void got_gap(const char *file, int line, const int *b, int shape, long at, long n)
{
    lt_count_check();
    for (long i = 0; i < n; i++) {
        if (!same(file, line, b, shape, at + i, GAP))
            return;
    }
}

/* Nothing was written here. */
#define GOT_GAP(b, shape, at, n) got_gap(__FILE__, __LINE__, (b), (shape), (at), (n))

/* All get the name of a file that is not there: one rank makes it, and the others see that without MPI. */
static LT_UNUSED void agree_on_sign(char *path, size_t bytes)
{
    if (rank == 0) {
        snprintf(path, bytes, "%s/limosa-sign-XXXXXX", lt_folder());
        int descriptor = mkstemp(path);
        CHECK(descriptor >= 0);
        close(descriptor);
        CHECK_INT(unlink(path), 0);
    }
    OK(MPI_Bcast(path, (int)bytes, MPI_CHAR, 0, comm));
}

static LT_UNUSED void on(MPI_Comm with, void (*body)(void))
{
    comm = with;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    body();
}

/* Runs `body` on the world, a duplicate of it, MPI_COMM_SELF, the odd and even halves, and the world reversed. */
static LT_UNUSED void on_all(void (*body)(void))
{
    MPI_Comm dup, halves, reversed;
    on(MPI_COMM_WORLD, body);
    on(MPI_COMM_SELF, body);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    on(dup, body);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_split(MPI_COMM_WORLD, lt_rank % 2, lt_rank, &halves));
    on(halves, body);
    OK(MPI_Comm_free(&halves));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -lt_rank, &reversed));
    on(reversed, body);
    OK(MPI_Comm_free(&reversed));
}

#endif
