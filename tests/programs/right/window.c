/* Correct programs: windows (MPI-5 chapter 12). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64], y[64];
static MPI_Win window;

static void make(void)
{
    MPI_Win_create(x, sizeof x, sizeof(int), MPI_INFO_NULL, WORLD, &window);
}

static void puts_between_fences(void)
{
    make();
    y[0] = 100 + rank;
    MPI_Win_fence(0, window);
    MPI_Put(y, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    EXPECT(x[0], 100 + (rank + size - 1) % size);
    MPI_Win_free(&window);
}

static void a_counter_under_locks(void)
{
    int one = 1, before;
    make();
    for (int i = 0; i < 50; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        EXPECT(x[0], 50 * size);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static void one_rank_waits_long_for_a_lock(void)
{
    make();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Barrier(WORLD);
        nap(0.3);
        MPI_Win_unlock(0, window);
    } else {
        MPI_Barrier(WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static void posts_and_starts(void)
{
    MPI_Group all, other;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Group origins;
    make();
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &to, &other);
    MPI_Group_incl(all, 1, &from, &origins);
    for (int i = 0; i < 5; i++) {
        y[0] = i;
        MPI_Win_post(origins, 0, window);
        MPI_Win_start(other, 0, window);
        MPI_Put(y, 1, MPI_INT, to, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
        EXPECT(x[0], i);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
}

static void flushes_under_one_lock_of_all(void)
{
    int got = -1;
    make();
    x[1] = 7 * rank;
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    for (int target = 0; target < size; target++) {
        MPI_Get(&got, 1, MPI_INT, target, 1, 1, MPI_INT, window);
        MPI_Win_flush(target, window);
        EXPECT(got, 7 * target);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(WORLD);
    MPI_Win_free(&window);
}

static void nothing_to_nobody(void)
{
    make();
    MPI_Win_fence(0, window);
    MPI_Put(NULL, 0, MPI_INT, (rank + 1) % size, 64, 0, MPI_INT, window);
    MPI_Put(y, 1, MPI_INT, MPI_PROC_NULL, 1000, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void same_elements_by_other_types(void)
{
    MPI_Datatype pair, byte_pair;
    int to = (rank + 1) % size;
    make();
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_vector(2, 4, 8, MPI_BYTE, &byte_pair);
    MPI_Type_commit(&byte_pair);
    y[0] = 5;
    y[1] = rank;
    MPI_Win_fence(0, window);
    MPI_Put(y, 1, pair, to, 0, 2, MPI_INT, window);
    MPI_Put(y, 8, MPI_BYTE, to, 8, 1, byte_pair, window);
    MPI_Win_fence(0, window);
    EXPECT(x[0], 5);
    EXPECT(x[1], (rank + size - 1) % size);
    EXPECT(x[8], 5);
    MPI_Type_free(&pair);
    MPI_Type_free(&byte_pair);
    MPI_Win_free(&window);
}

/* Each origin's elements lie between those of the others. */
static void interleaved_puts(void)
{
    MPI_Datatype turns;
    make();
    MPI_Type_vector(8, 1, size, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    for (int i = 0; i < 8; i++)
        y[i] = 10 * rank + i;
    MPI_Win_fence(0, window);
    for (int target = 0; target < size; target++)
        MPI_Put(y, 8, MPI_INT, target, rank, 1, turns, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 8 * size; i++)
        EXPECT(x[i], 10 * (i % size) + i / size);
    MPI_Type_free(&turns);
    MPI_Win_free(&window);
}

static void accumulations_of_all_with_one_operation(void)
{
    int one = 1, before, nothing = 0;
    make();
    MPI_Win_fence(0, window);
    for (int i = 0; i < 3; i++)
        MPI_Accumulate(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT32_T, 0, 2, MPI_SUM, window);
    MPI_Fetch_and_op(&nothing, &before, MPI_INT, 0, 2, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    if (rank == 0)
        EXPECT(x[2], 4 * size);
    MPI_Win_free(&window);
}

static void the_same_bytes_in_other_epochs(void)
{
    make();
    for (int i = 0; i < 3 * size; i++) {
        MPI_Win_fence(0, window);
        y[0] = i;
        if (i % size == rank)
            MPI_Put(y, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        MPI_Get(y, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        EXPECT(y[0], i);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 5; i++) {
        y[0] = i;
        MPI_Put(y, 1, MPI_INT, (rank + 1) % size, 7, 1, MPI_INT, window);
        MPI_Win_flush((rank + 1) % size, window);
        MPI_Get(y + 1, 1, MPI_INT, (rank + 1) % size, 7, 1, MPI_INT, window);
        MPI_Win_flush_all(window);
        EXPECT(y[1], i);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(WORLD);
    MPI_Win_free(&window);
}

/* A lock of the program's own: it swaps, and replaces. */
static void swaps_beside_an_operation(void)
{
    int free_ = 0, taken = 1, before, one = 1;
    make();
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 3; i++) {
        do {
            MPI_Compare_and_swap(&taken, &free_, &before, MPI_INT, 0, 0, window);
            MPI_Win_flush(0, window);
        } while (before != 0);
        MPI_Get(y, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        y[0] += one;
        MPI_Put(y, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        MPI_Accumulate(&free_, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        EXPECT(x[1], 3 * size);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static void everybody_gets_the_same(void)
{
    make();
    x[3] = rank;
    MPI_Win_fence(0, window);
    MPI_Get(y, 8, MPI_INT, 0, 0, 8, MPI_INT, window);
    MPI_Get(y + 8, 8, MPI_INT, 0, 2, 8, MPI_INT, window);
    MPI_Win_fence(0, window);
    EXPECT(y[3], 0);
    MPI_Win_free(&window);
}

CASES(MPI_THREAD_SINGLE, CASE(interleaved_puts), CASE(accumulations_of_all_with_one_operation),
      CASE(the_same_bytes_in_other_epochs), CASE(swaps_beside_an_operation), CASE(everybody_gets_the_same),
      CASE(same_elements_by_other_types), CASE(puts_between_fences), CASE(a_counter_under_locks),
      CASE(one_rank_waits_long_for_a_lock), CASE(posts_and_starts), CASE(flushes_under_one_lock_of_all),
      CASE(nothing_to_nobody))
