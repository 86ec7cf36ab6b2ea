/* Wrong programs: windows (MPI-5 chapter 12). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD
#define NO_INFO MPI_INFO_NULL

static int x[64], y[64];
static MPI_Win window;

static void make(void)
{
    MPI_Win_create(x, sizeof x, sizeof(int), NO_INFO, WORLD, &window);
}

/* Puts one number to the other rank. */
static void put(void)
{
    MPI_Put(y, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, window);
}

static void fenced(void)
{
    make();
    MPI_Win_fence(0, window);
}

static void end(void)
{
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static void unit_of_zero(void)
{
    MPI_Win_create(x, sizeof x, 0, NO_INFO, WORLD, &window);
}

static void size_negative(void)
{
    MPI_Win_create(x, -4, 1, NO_INFO, WORLD, &window);
}

static void memory_null(void)
{
    MPI_Win_create(NULL, 4, 1, NO_INFO, WORLD, &window);
}

static void window_null(void)
{
    MPI_Win_fence(0, MPI_WIN_NULL);
}

static void window_freed(void)
{
    make();
    MPI_Win copy = window;
    MPI_Win_free(&window);
    MPI_Win_fence(0, copy);
}

static void put_beyond_the_end(void)
{
    fenced();
    MPI_Put(y, 1, MPI_INT, 1 - rank, 64, 1, MPI_INT, window);
    end();
}

static void displacement_in_bytes(void)
{
    fenced();
    MPI_Get(y, 1, MPI_INT, 1 - rank, 63 * (MPI_Aint)sizeof(int), 1, MPI_INT, window);
    end();
}

static void target_beyond_the_end(void)
{
    fenced();
    MPI_Put(y, 1, MPI_INT, size, 0, 1, MPI_INT, window);
    end();
}

static void origin_longer_than_target(void)
{
    fenced();
    MPI_Put(y, 2, MPI_INT, 1 - rank, 0, 1, MPI_INT, window);
    end();
}

static void accumulate_of_two_types(void)
{
    fenced();
    MPI_Accumulate(y, 1, MPI_INT, 1 - rank, 0, 1, MPI_FLOAT, MPI_SUM, window);
    end();
}

static void accumulate_with_function(void)
{
    fenced();
    MPI_Accumulate(y, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, MPI_OP_NULL, window);
    end();
}

static void swap_of_floats(void)
{
    fenced();
    MPI_Compare_and_swap(y, y + 1, y + 2, MPI_FLOAT, 1 - rank, 0, window);
    end();
}

static void lock_type_unknown(void)
{
    make();
    MPI_Win_lock(7, 0, 0, window);
    MPI_Win_free(&window);
}

static void assertion_unknown(void)
{
    make();
    MPI_Win_fence(1, window);
    MPI_Win_free(&window);
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

static void put_before_fence(void)
{
    make();
    put();
    end();
}

static void put_after_unlock(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, window);
    put();
    MPI_Win_unlock(1 - rank, window);
    put();
    MPI_Win_free(&window);
}

static void lock_twice(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
}

static void unlock_without_lock(void)
{
    make();
    MPI_Win_unlock(1 - rank, window);
    MPI_Win_free(&window);
}

static void unlock_of_another_target(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    MPI_Win_unlock(1 - rank, window);
    MPI_Win_free(&window);
}

static void put_to_a_target_that_is_not_locked(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    put();
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
}

static void fence_while_locked(void)
{
    make();
    MPI_Win_lock_all(0, window);
    MPI_Win_fence(0, window);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void flush_without_lock(void)
{
    make();
    MPI_Win_flush(1 - rank, window);
    MPI_Win_free(&window);
}

static void complete_without_start(void)
{
    make();
    MPI_Win_complete(window);
    MPI_Win_free(&window);
}

static void wait_without_post(void)
{
    make();
    MPI_Win_wait(window);
    MPI_Win_free(&window);
}

static void freed_while_locked(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, window);
    MPI_Win_free(&window);
}

static void start_that_nobody_posts_for(void)
{
    MPI_Group all, other;
    int to = 1 - rank;
    make();
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &to, &other);
    if (rank == 0) {
        MPI_Win_start(other, 0, window);
        put();
        MPI_Win_complete(window);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
}

static void one_rank_does_not_fence(void)
{
    make();
    if (rank == 0)
        MPI_Win_fence(0, window);
    else
        MPI_Recv(y, 1, MPI_INT, 0, 5, WORLD, ANY);
    MPI_Win_free(&window);
}

static void never_freed(void)
{
    fenced();
    MPI_Win_fence(0, window);
}

/* --- dynamic windows ---------------------------------------------------------------------------------------------- */

static void attached_twice(void)
{
    MPI_Win_create_dynamic(NO_INFO, WORLD, &window);
    MPI_Win_attach(window, x, sizeof x);
    MPI_Win_attach(window, x + 1, 4);
    MPI_Win_free(&window);
}

static void detached_without_attach(void)
{
    MPI_Win_create_dynamic(NO_INFO, WORLD, &window);
    MPI_Win_detach(window, x);
    MPI_Win_free(&window);
}

static void attach_to_static_window(void)
{
    make();
    MPI_Win_attach(window, y, sizeof y);
    MPI_Win_free(&window);
}

static void put_types_differ(void)
{
    fenced();
    MPI_Put(y, 1, MPI_FLOAT, 1 - rank, 0, 1, MPI_INT, window);
    end();
}

static void get_types_differ(void)
{
    fenced();
    MPI_Get(y, 2, MPI_INT, 1 - rank, 0, 1, MPI_DOUBLE, window);
    end();
}

/* --- conflicting accesses in one epoch ---------------------------------------------------------------------------- */

static void puts_of_one_origin_overlap(void)
{
    fenced();
    MPI_Put(y, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, window);
    MPI_Put(y, 4, MPI_INT, 1 - rank, 3, 4, MPI_INT, window);
    end();
}

static void puts_of_one_origin_overlap_under_a_lock(void)
{
    make();
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    if (rank == 1) {
        MPI_Put(y, 1, MPI_INT, 0, 5, 1, MPI_INT, window);
        MPI_Win_flush_local(0, window);
        MPI_Put(y, 1, MPI_INT, 0, 5, 1, MPI_INT, window);
    }
    MPI_Win_unlock(0, window);
    MPI_Win_free(&window);
}

static void put_and_get_of_one_origin_overlap(void)
{
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    fenced();
    MPI_Put(y, 4, MPI_INT, 1 - rank, 1, 1, column, window);
    MPI_Get(y + 8, 1, MPI_INT, 1 - rank, 17, 1, MPI_INT, window);
    MPI_Type_free(&column);
    end();
}

static void puts_of_two_origins_overlap(void)
{
    fenced();
    if (rank != 0)
        MPI_Put(y, 2, MPI_INT, 0, rank, 2, MPI_INT, window);
    end();
}

static void put_and_get_of_two_origins_overlap(void)
{
    fenced();
    if (rank == 1)
        MPI_Put(y, 1, MPI_INT, 0, 3, 1, MPI_INT, window);
    if (rank == 2)
        MPI_Get(y, 8, MPI_INT, 0, 0, 8, MPI_INT, window);
    end();
}

static void accumulate_with_two_operations(void)
{
    fenced();
    if (rank != 0)
        MPI_Accumulate(y, 1, MPI_INT, 0, 3, 1, MPI_INT, rank == 1 ? MPI_SUM : MPI_MAX, window);
    end();
}

static void accumulate_elements_of_two_types(void)
{
    fenced();
    MPI_Accumulate(y, 2, MPI_INT, 1 - rank, 0, 2, MPI_INT, MPI_SUM, window);
    MPI_Accumulate(y, 1, MPI_INT64_T, 1 - rank, 0, 1, MPI_INT64_T, MPI_SUM, window);
    end();
}

static void put_where_another_accumulates(void)
{
    int before, one = 1;
    fenced();
    if (rank == 1)
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 3, MPI_SUM, window);
    if (rank == 2)
        MPI_Put(y, 1, MPI_INT, 0, 3, 1, MPI_INT, window);
    end();
}

CASES(MPI_THREAD_SINGLE, CASE(puts_of_one_origin_overlap), CASE(puts_of_one_origin_overlap_under_a_lock),
      CASE(put_and_get_of_one_origin_overlap), CASE(puts_of_two_origins_overlap),
      CASE(put_and_get_of_two_origins_overlap), CASE(accumulate_with_two_operations),
      CASE(accumulate_elements_of_two_types), CASE(put_where_another_accumulates), CASE(put_types_differ),
      CASE(get_types_differ), CASE(unit_of_zero), CASE(size_negative), CASE(memory_null), CASE(window_null),
      CASE(window_freed), CASE(put_beyond_the_end), CASE(displacement_in_bytes), CASE(target_beyond_the_end),
      CASE(origin_longer_than_target), CASE(accumulate_of_two_types), CASE(accumulate_with_function),
      CASE(swap_of_floats), CASE(lock_type_unknown), CASE(assertion_unknown), CASE(put_before_fence),
      CASE(put_after_unlock), CASE(lock_twice), CASE(unlock_without_lock), CASE(unlock_of_another_target),
      CASE(put_to_a_target_that_is_not_locked), CASE(fence_while_locked), CASE(flush_without_lock),
      CASE(complete_without_start), CASE(wait_without_post), CASE(freed_while_locked),
      CASE(start_that_nobody_posts_for), CASE(one_rank_does_not_fence), CASE(never_freed), CASE(attached_twice),
      CASE(detached_without_attach), CASE(attach_to_static_window))
