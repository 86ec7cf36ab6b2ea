! What mpi_f08 has beyond mpi: array sections with gaps, large counts, absent error arguments, conversions of statuses.
program sections
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, size, number, ierr, i, class, old(MPI_STATUS_SIZE), packed_size, position
  integer(kind=MPI_COUNT_KIND) :: count
  integer :: a(6, 8), b(6, 8), flat(48)
  complex :: pairs(10)
  real :: parts(10)
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status, twin
  type(MPI_Op) :: op
  type(MPI_Datatype) :: two

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call check(.not. MPI_SUBARRAYS_SUPPORTED, "MPI_SUBARRAYS_SUPPORTED")
  a = reshape([(i, i = 1, 48)], [6, 8])

  ! blocking calls copy a section with gaps
  b = 0
  call MPI_Sendrecv(a(1:6:2, 2:8:3), 9, MPI_INTEGER, 0, 0, b(2:6:2, 1:3), 9, MPI_INTEGER, 0, 0, MPI_COMM_SELF, status)
  call check(all(b(2:6:2, 1:3) == a(1:6:2, 2:8:3)) .and. all(b(1:5:2, :) == 0), "sections in MPI_Sendrecv")
  b = 0
  call MPI_Allreduce(a(3, :), b(:, 8), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF)
  call check(all(b(:, 8) == a(3, 1:6)), "sections in MPI_Allreduce")
  b = a
  call MPI_Allreduce(MPI_IN_PLACE, b(2, :), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF)
  call check(all(b == a), "a section in place")

  ! a call leaves alone what it does not receive, where another receives at the same time
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  flat = 0
  number = 9
  call MPI_Irecv(flat(5), 1, MPI_INTEGER, modulo(rank - 1, size), 8, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(number, 1, MPI_INTEGER, mod(rank + 1, size), 8, MPI_COMM_WORLD, requests(2))
  call MPI_Sendrecv([7], 1, MPI_INTEGER, mod(rank + 1, size), 9, flat(1:7:2), 1, MPI_INTEGER, modulo(rank - 1, size), 9, &
    MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call check(all(flat(1:7) == [7, 0, 0, 0, 9, 0, 0]), "a part of a section is received")

  ! the others have a datatype of the section
  b = 0
  call MPI_Irecv(b(6:1:-1, 8:1:-2), 24, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(1))
  call MPI_Isend(a(1:3, :), 24, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call check(all(reshape(b(6:1:-1, 8:1:-2), [24]) == reshape(a(1:3, :), [24])) .and. all(b(:, 1:7:2) == 0), &
    "sections in MPI_Isend")
  flat = 0
  call MPI_Irecv(flat, 5, MPI_INTEGER, 0, 2, MPI_COMM_SELF, request)
  call MPI_Send_init(a(1:6:2, :), 5, MPI_INTEGER, 0, 2, MPI_COMM_SELF, requests(1))
  call MPI_Start(requests(1))
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Request_free(requests(1))
  call check(all(flat(1:6) == [1, 3, 5, 7, 9, 0]), "a part of a section")
  pairs = [(cmplx(i, -i), i = 1, 10)]
  call MPI_Irecv(parts, 10, MPI_REAL, 0, 3, MPI_COMM_SELF, request)
  call MPI_Isend(pairs(1:10:2), 10, MPI_REAL, 0, 3, MPI_COMM_SELF, requests(1))
  call MPI_Wait(request, status)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call check(all(parts(1:4) == [1.0, -1.0, 3.0, -3.0]), "elements of several numbers")

  ! what cannot be passed is refused
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Iallreduce(a(1, :), flat, 8, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, request, ierr)
  call MPI_Error_class(ierr, class)
  call check(class == MPI_ERR_BUFFER, "a section in MPI_Iallreduce")
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, two)
  call MPI_Type_commit(two)
  call MPI_Isend(a(1, :), 1, two, 0, 0, MPI_COMM_SELF, request, ierr)
  call MPI_Error_class(ierr, class)
  call check(class == MPI_ERR_BUFFER, "a datatype with gaps in a section with gaps")
  call MPI_Isend(a(1, :), 9, MPI_INTEGER, 0, 0, MPI_COMM_SELF, request, ierr)
  call MPI_Error_class(ierr, class)
  call check(class == MPI_ERR_BUFFER, "more elements than a section has")
  flat = 0
  call MPI_Sendrecv(a(1, :), 1, two, 0, 4, flat, 2, MPI_INTEGER, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE)
  call check(all(flat(1:3) == [1, 13, 0]), "a datatype with gaps in a blocking call")
  call MPI_Type_free(two)

  ! large counts
  call MPI_Sendrecv(a, 48_MPI_COUNT_KIND, MPI_INTEGER, 0, 5, flat, 48_MPI_COUNT_KIND, MPI_INTEGER, 0, 5, MPI_COMM_SELF, &
    status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  call check(count == 48 .and. flat(48) == 48, "large counts")
  call MPI_Type_contiguous(4000000000_MPI_COUNT_KIND, MPI_BYTE, two)
  call MPI_Type_size(two, count)
  call check(count == 4000000000_MPI_COUNT_KIND, "a large datatype")
  call MPI_Type_free(two)
  call MPI_Op_create_c(add, .true., op)
  flat = 1
  call MPI_Reduce_local([(i, i = 1, 48)], flat, 48_MPI_COUNT_KIND, MPI_INTEGER, op)
  call check(flat(48) == 49, "MPI_Op_create_c")
  call MPI_Op_free(op)
  call MPI_Pack_size(3, MPI_INTEGER, MPI_COMM_SELF, packed_size)
  position = 0
  call MPI_Pack(a(1:5:2, 1), 3, MPI_INTEGER, flat, packed_size, position, MPI_COMM_SELF)
  call check(all(flat(1:3) == [1, 3, 5]), "a section in MPI_Pack")

  ! statuses
  call MPI_Status_f082f(status, old)
  call check(old(MPI_SOURCE) == 0 .and. old(MPI_TAG) == 5, "MPI_Status_f082f")
  call MPI_Status_f2f08(old, twin)
  call MPI_Get_count(twin, MPI_INTEGER, i)
  call check(i == 48 .and. twin%MPI_TAG == 5, "MPI_Status_f2f08")
  call MPI_F_sync_reg(flat)
  call PMPI_Barrier(MPI_COMM_WORLD)
  call check(MPI_COMM_WORLD /= MPI_COMM_SELF .and. MPI_INTEGER == MPI_Datatype(MPI_INTEGER%MPI_VAL), "operators")
  call MPI_Finalize()
  if (rank == 0) print *, "done"
contains
  subroutine add(in, inout, length, datatype)
    type(c_ptr), value :: in, inout
    integer(kind=MPI_COUNT_KIND) :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: x(:), y(:)
    call c_f_pointer(in, x, [length])
    call c_f_pointer(inout, y, [length])
    y = y + x
  end subroutine
end program
