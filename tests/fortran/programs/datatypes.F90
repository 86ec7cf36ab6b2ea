#include "interface.inc"
program datatypes
  use MPI_MODULE
  use checks
  implicit none
  type :: particle
    sequence
    real(kind=8) :: x(3)
    integer :: species, padding
  end type
  integer :: ierr, rank, size, integers, addresses, types_in, combiner, length, bytes, i
  integer :: matrix(4, 6), columns(4, 6), contents(10)
  integer(kind=MPI_ADDRESS_KIND) :: base, place(2), lower, extent, places(10)
  integer(kind=MPI_COUNT_KIND) :: wide, wide_lower
  type(particle) :: sent(3), received(3)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  HANDLE(MPI_Datatype) :: made, row, parts(2), decoded(10)
  STATUS(status)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  ! a structure
  call MPI_Get_address(sent(1)%x, place(1), ierr)
  call MPI_Get_address(sent(1)%species, place(2), ierr)
  base = place(1)
  parts = [MPI_DOUBLE_PRECISION, MPI_INTEGER]
  call MPI_Type_create_struct(2, [3, 1], place - base, parts, made, ierr)
  call MPI_Type_create_resized(made, 0_MPI_ADDRESS_KIND, 32_MPI_ADDRESS_KIND, row, ierr)
  call MPI_Type_free(made, ierr)
  made = row
  call MPI_Type_commit(made, ierr)
  call MPI_Type_get_extent(made, lower, extent, ierr)
  call check(lower == 0 .and. extent == 32, "MPI_Type_get_extent")
  call MPI_Type_size(made, bytes, ierr)
  call check(bytes == 28, "MPI_Type_size")
  do i = 1, 3
    sent(i) = particle([1d0 * rank, 2d0 * i, 3d0], i, 0)
    received(i) = particle([0d0, 0d0, 0d0], 0, -1)
  end do
  call MPI_Sendrecv(sent, 3, made, 0, 1, received, 3, made, 0, 1, MPI_COMM_SELF, status, ierr)
  call check(received(3)%x(2) == 6 .and. received(3)%species == 3 .and. received(2)%padding == -1, "a structure")
  call MPI_Type_set_name(made, "particle ", ierr)
  call MPI_Type_get_name(made, name, length, ierr)
  call check(name == "particle" .and. length == 8, "MPI_Type_get_name")
  call MPI_Type_free(made, ierr)

  ! a row of a matrix
  matrix = reshape([(i, i = 1, 24)], [4, 6])
  call MPI_Type_vector(6, 1, 4, MPI_INTEGER, row, ierr)
  call MPI_Type_commit(row, ierr)
  columns = 0
  call MPI_Sendrecv(matrix(2, 1), 1, row, 0, 1, columns(1, 1), 6, MPI_INTEGER, 0, 1, MPI_COMM_SELF, status, ierr)
  call check(all(columns(:, 1) == matrix(2, 1:4)) .and. all(columns(1:2, 2) == matrix(2, 5:6)), "a row")
  call MPI_Type_get_envelope(row, integers, addresses, types_in, combiner, ierr)
  call check(integers == 3 .and. types_in == 1 .and. combiner == MPI_COMBINER_VECTOR, "MPI_Type_get_envelope")
  decoded = MPI_DATATYPE_NULL
  call MPI_Type_get_contents(row, 10, 10, 10, contents, places, decoded, ierr)
  call check(contents(1) == 6 .and. contents(3) == 4 .and. decoded(1) == MPI_INTEGER .and. &
    decoded(2) == MPI_DATATYPE_NULL, "MPI_Type_get_contents")
  call MPI_Type_free(row, ierr)
  call MPI_Type_create_subarray(2, [4, 6], [2, 3], [1, 2], MPI_ORDER_FORTRAN, MPI_INTEGER, made, ierr)
  call MPI_Type_commit(made, ierr)
  columns = 0
  call MPI_Sendrecv(matrix, 1, made, 0, 1, columns, 24, MPI_INTEGER, 0, 1, MPI_COMM_SELF, status, ierr)
  call check(columns(1, 1) == matrix(2, 3) .and. columns(2, 2) == matrix(3, 5), "MPI_Type_create_subarray")
  call MPI_Type_free(made, ierr)

  ! types of Fortran
  call MPI_Type_create_f90_real(15, 300, made, ierr)
  call MPI_Type_size(made, bytes, ierr)
  call check(bytes == 8, "MPI_Type_create_f90_real")
  call MPI_Type_create_f90_integer(18, made, ierr)
  call MPI_Type_size(made, bytes, ierr)
  call check(bytes == 8, "MPI_Type_create_f90_integer")
  call MPI_Sizeof(1d0, bytes, ierr)
  call MPI_Sizeof(matrix(1:2, :), integers, ierr)
  call check(bytes == 8 .and. integers == 4, "MPI_Sizeof")
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, made, ierr)
  call MPI_Type_size(made, bytes, ierr)
  call check(bytes == 8, "MPI_Type_match_size")
  call MPI_Type_get_extent_x(MPI_REAL8, wide_lower, wide, ierr)
  call check(wide == 8, "MPI_Type_get_extent_x")
  call check(kind(ierr) == MPI_INTEGER_KIND, "MPI_INTEGER_KIND")
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
