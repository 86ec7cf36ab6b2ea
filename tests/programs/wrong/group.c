/* Wrong programs: groups, communicators, topologies, sessions (MPI-5 chapters 7, 8 and 11). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[8];
static MPI_Comm comm = MPI_COMM_NULL;
static MPI_Group group, all;

static void free_world(void)
{
    comm = MPI_COMM_WORLD;
    MPI_Comm_free(&comm);
}

static void free_null(void)
{
    comm = MPI_COMM_NULL;
    MPI_Comm_free(&comm);
}

static void free_twice(void)
{
    MPI_Comm copy;
    MPI_Comm_dup(WORLD, &comm);
    copy = comm;
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
}

static void dup_null(void)
{
    MPI_Comm_dup(MPI_COMM_NULL, &comm);
}

static void split_with_negative_color(void)
{
    MPI_Comm_split(WORLD, -3, 0, &comm);
}

static void split_type_unknown(void)
{
    MPI_Comm_split_type(WORLD, 4711, 0, MPI_INFO_NULL, &comm);
}

static void group_rank_beyond_the_end(void)
{
    int ranks[] = {0, size};
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &group);
    MPI_Group_free(&all);
}

static void group_rank_twice(void)
{
    int ranks[] = {0, 0};
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &group);
    MPI_Group_free(&all);
}

static void group_range_without_stride(void)
{
    int range[][3] = {{0, 1, 0}};
    MPI_Comm_group(WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &group);
    MPI_Group_free(&all);
}

static void group_freed(void)
{
    int n;
    MPI_Comm_group(WORLD, &all);
    group = all;
    MPI_Group_free(&all);
    MPI_Group_size(group, &n);
}

static void create_from_foreign_group(void)
{
    /* The group of MPI_COMM_WORLD is not a part of MPI_COMM_SELF. */
    MPI_Comm_group(WORLD, &all);
    MPI_Comm_create(MPI_COMM_SELF, all, &comm);
    MPI_Group_free(&all);
}

static void create_group_outside(void)
{
    /* Only members of the group may call it. */
    int other = 1 - rank;
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &other, &group);
    MPI_Comm_create_group(WORLD, group, 0, &comm);
    if (comm != MPI_COMM_NULL)
        abort();
    MPI_Group_free(&group);
    MPI_Group_free(&all);
}

static void create_groups_differ(void)
{
    /* Each rank names the two in another order. */
    int ranks[] = {rank, 1 - rank};
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &group);
    MPI_Comm_create(WORLD, group, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    if (comm != MPI_COMM_NULL)
        MPI_Barrier(comm), MPI_Comm_free(&comm);
}

static void cart_too_large(void)
{
    int dims[] = {2, 2}, periods[] = {0, 0};
    MPI_Cart_create(WORLD, 2, dims, periods, 0, &comm);
}

static void cart_negative_dimension(void)
{
    int dims[] = {-1}, periods[] = {0};
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &comm);
}

static void cart_dims_differ(void)
{
    int dims[] = {rank + 1}, periods[] = {0};
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &comm);
    if (comm != MPI_COMM_NULL)
        MPI_Barrier(comm), MPI_Comm_free(&comm);
}

static void cart_call_without_topology(void)
{
    int coordinates[2];
    MPI_Cart_coords(WORLD, rank, 2, coordinates);
}

static void cart_shift_of_no_dimension(void)
{
    int dims[] = {2}, periods[] = {0}, from, to;
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &comm);
    MPI_Cart_shift(comm, 1, 1, &from, &to);
    MPI_Comm_free(&comm);
}

static void cart_coordinates_outside(void)
{
    int dims[] = {2}, periods[] = {0}, coordinates[] = {5}, to;
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &comm);
    MPI_Cart_rank(comm, coordinates, &to);
    MPI_Comm_free(&comm);
}

static void dims_do_not_divide(void)
{
    int dims[] = {4, 0};
    MPI_Dims_create(6, 2, dims);
}

static void split_against_dup(void)
{
    if (rank == 0)
        MPI_Comm_split(WORLD, 0, 0, &comm);
    else
        MPI_Comm_dup(WORLD, &comm);
    if (comm != MPI_COMM_NULL)
        MPI_Barrier(comm), MPI_Comm_free(&comm);
}

static void one_rank_does_not_split(void)
{
    if (rank == 0)
        MPI_Comm_split(WORLD, 0, 0, &comm);
    MPI_Barrier(WORLD);
}

static void free_on_one_rank_only(void)
{
    MPI_Comm_dup(WORLD, &comm);
    if (rank == 0)
        MPI_Comm_free(&comm);
    else
        MPI_Recv(x, 1, MPI_INT, 0, 0, comm, ANY);
}

static void never_freed(void)
{
    MPI_Comm_dup(WORLD, &comm);
}

static void name_null(void)
{
    MPI_Comm_set_name(WORLD, NULL);
}

static void keyval_wrong(void)
{
    MPI_Comm_set_attr(WORLD, 4711, x);
}

static void attribute_of_world_set(void)
{
    MPI_Comm_set_attr(WORLD, MPI_TAG_UB, x);
}

static void set_of_session_unknown(void)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "no://such", &group);
    MPI_Session_finalize(&session);
}

static void session_finalized_twice(void)
{
    MPI_Session session, copy;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    copy = session;
    MPI_Session_finalize(&session);
    MPI_Session_finalize(&copy);
}

static void session_tags_differ(void)
{
    /* The string tells apart the calls of MPI_Comm_create_from_group: with different ones the ranks wait for ever. */
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, rank == 0 ? "here" : "there", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

static void intercomm_of_overlapping_groups(void)
{
    MPI_Comm_dup(WORLD, &comm);
    MPI_Comm between;
    MPI_Intercomm_create(comm, 0, WORLD, 1, 0, &between);
    MPI_Comm_free(&comm);
}

CASES(MPI_THREAD_SINGLE, CASE(free_world), CASE(free_null), CASE(free_twice), CASE(dup_null),
      CASE(split_with_negative_color), CASE(split_type_unknown), CASE(group_rank_beyond_the_end),
      CASE(group_rank_twice), CASE(group_range_without_stride), CASE(group_freed), CASE(create_from_foreign_group),
      CASE(create_group_outside), CASE(create_groups_differ), CASE(cart_too_large), CASE(cart_negative_dimension),
      CASE(cart_dims_differ), CASE(cart_call_without_topology), CASE(cart_shift_of_no_dimension),
      CASE(cart_coordinates_outside), CASE(dims_do_not_divide), CASE(split_against_dup), CASE(one_rank_does_not_split),
      CASE(free_on_one_rank_only), CASE(never_freed), CASE(name_null), CASE(keyval_wrong), CASE(attribute_of_world_set),
      CASE(set_of_session_unknown), CASE(session_finalized_twice), CASE(session_tags_differ),
      CASE(intercomm_of_overlapping_groups))
