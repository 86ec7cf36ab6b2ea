/* Wrong programs: datatypes (MPI-5 chapter 5). */
#include "cases.h"

#define WORLD MPI_COMM_WORLD

static int x[64];
static MPI_Datatype type;

static void count_negative(void)
{
    MPI_Type_contiguous(-1, MPI_INT, &type);
}

static void blocklength_negative(void)
{
    MPI_Type_vector(2, -1, 4, MPI_INT, &type);
}

static void old_type_null(void)
{
    MPI_Type_contiguous(2, MPI_DATATYPE_NULL, &type);
}

static void old_type_uninitialised(void)
{
    MPI_Datatype garbage;
    memset(&garbage, 0x5a, sizeof garbage);
    MPI_Type_contiguous(2, garbage, &type);
}

static void subarray_beyond_the_end(void)
{
    int sizes[] = {4, 4}, subsizes[] = {2, 3}, starts[] = {0, 2};
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
}

static void subarray_of_no_dimension(void)
{
    int sizes[] = {4}, subsizes[] = {2}, starts[] = {0};
    MPI_Type_create_subarray(0, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
}

static void subarray_order_wrong(void)
{
    int sizes[] = {4}, subsizes[] = {2}, starts[] = {0};
    MPI_Type_create_subarray(1, sizes, subsizes, starts, 4711, MPI_INT, &type);
}

static void darray_rank_beyond_the_end(void)
{
    int sizes[] = {8}, distributions[] = {MPI_DISTRIBUTE_BLOCK}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2};
    MPI_Type_create_darray(2, 5, 1, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
}

static void darray_grid_of_wrong_size(void)
{
    int sizes[] = {8}, distributions[] = {MPI_DISTRIBUTE_BLOCK}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {3};
    MPI_Type_create_darray(2, 0, 1, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
}

static void free_predefined(void)
{
    type = MPI_INT;
    MPI_Type_free(&type);
}

static void free_twice(void)
{
    MPI_Datatype copy;
    MPI_Type_contiguous(2, MPI_INT, &type);
    copy = type;
    MPI_Type_free(&type);
    MPI_Type_free(&copy);
}

static void use_after_free(void)
{
    MPI_Datatype copy;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    copy = type;
    MPI_Type_free(&type);
    MPI_Send(x, 1, copy, MPI_PROC_NULL, 0, WORLD);
}

static void commit_null(void)
{
    type = MPI_DATATYPE_NULL;
    MPI_Type_commit(&type);
}

static void struct_with_null_arrays(void)
{
    MPI_Type_create_struct(2, NULL, NULL, NULL, &type);
}

static void struct_of_communicators(void)
{
    int lengths[] = {1};
    MPI_Aint displacements[] = {0};
    MPI_Datatype types[] = {(MPI_Datatype)MPI_COMM_WORLD};
    MPI_Type_create_struct(1, lengths, displacements, types, &type);
}

static void larger_than_memory(void)
{
    MPI_Datatype huge, more;
    MPI_Type_contiguous(2147483647, MPI_DOUBLE, &huge);
    MPI_Type_contiguous(2147483647, huge, &more);
    MPI_Type_contiguous(2147483647, more, &type);
    MPI_Type_free(&huge);
    MPI_Type_free(&more);
}

static void pack_beyond_the_end(void)
{
    char buffer[8];
    int position = 0;
    MPI_Pack(x, 4, MPI_INT, buffer, sizeof buffer, &position, WORLD);
}

static void pack_from_a_negative_position(void)
{
    char buffer[32];
    int position = -4;
    MPI_Pack(x, 4, MPI_INT, buffer, sizeof buffer, &position, WORLD);
}

static void pack_in_place(void)
{
    char buffer[32];
    int position = 0;
    MPI_Pack(MPI_IN_PLACE, 4, MPI_INT, buffer, sizeof buffer, &position, WORLD);
}

static void unpack_beyond_the_end(void)
{
    char buffer[8] = {0};
    int position = 0;
    MPI_Unpack(buffer, sizeof buffer, &position, x, 4, MPI_INT, WORLD);
}

static void unpack_in_place(void)
{
    char buffer[32] = {0};
    int position = 0;
    MPI_Unpack(buffer, sizeof buffer, &position, MPI_IN_PLACE, 4, MPI_INT, WORLD);
}

static void external_format_unknown(void)
{
    char buffer[32];
    MPI_Aint position = 0;
    MPI_Pack_external("internal", x, 1, MPI_INT, buffer, sizeof buffer, &position);
}

static void contents_of_predefined(void)
{
    int integers[4];
    MPI_Aint addresses[4];
    MPI_Datatype types[4];
    MPI_Type_get_contents(MPI_INT, 1, 1, 1, integers, addresses, types);
}

static void contents_into_too_little_room(void)
{
    int integers[1];
    MPI_Aint addresses[1];
    MPI_Datatype types[1];
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_get_contents(type, 1, 0, 1, integers, addresses, types);
    MPI_Type_free(&type);
}

static void overlapping_entries_in_a_receive(void)
{
    /* A receive must not store into the same place twice. */
    int lengths[] = {1, 1}, displacements[] = {0, 0};
    MPI_Type_indexed(2, lengths, displacements, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(x, 2, MPI_INT, rank, 0, x + 8, 1, type, rank, 0, WORLD, ANY);
    MPI_Type_free(&type);
}

static void half_an_element(void)
{
    /* Six bytes arrive in a buffer of integers. */
    int count = 0;
    MPI_Status status;
    MPI_Sendrecv("sixth", 6, MPI_BYTE, rank, 0, x, 2, MPI_INT, rank, 0, WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    if (count != MPI_UNDEFINED)
        abort();
}

static void type_never_freed(void)
{
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_commit(&type);
}

static void struct_against_other_order(void)
{
    int lengths[] = {1, 1};
    MPI_Aint displacements[] = {0, 8};
    MPI_Datatype types[] = {rank == 0 ? MPI_INT : MPI_FLOAT, rank == 0 ? MPI_FLOAT : MPI_INT};
    MPI_Type_create_struct(2, lengths, displacements, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0)
        MPI_Send(x, 1, type, 1, 0, WORLD);
    else
        MPI_Recv(x, 1, type, 0, 0, WORLD, ANY);
    MPI_Type_free(&type);
}

static void c_long_as_int(void)
{
    long wide[4] = {1, 2, 3, 4};
    if (rank == 0)
        MPI_Send(wide, 4, MPI_LONG, 1, 0, WORLD);
    else
        MPI_Recv(x, 8, MPI_INT, 0, 0, WORLD, ANY);
}

CASES(MPI_THREAD_SINGLE, CASE(count_negative), CASE(blocklength_negative), CASE(old_type_null),
      CASE(old_type_uninitialised), CASE(subarray_beyond_the_end), CASE(subarray_of_no_dimension),
      CASE(subarray_order_wrong), CASE(darray_rank_beyond_the_end), CASE(darray_grid_of_wrong_size),
      CASE(free_predefined), CASE(free_twice), CASE(use_after_free), CASE(commit_null), CASE(struct_with_null_arrays),
      CASE(struct_of_communicators), CASE(larger_than_memory), CASE(pack_beyond_the_end),
      CASE(pack_from_a_negative_position), CASE(pack_in_place), CASE(unpack_beyond_the_end), CASE(unpack_in_place),
      CASE(external_format_unknown), CASE(contents_of_predefined), CASE(contents_into_too_little_room),
      CASE(overlapping_entries_in_a_receive), CASE(half_an_element), CASE(type_never_freed),
      CASE(struct_against_other_order), CASE(c_long_as_int))
