#include "interface.inc"
module operations
  use MPI_MODULE
  use, intrinsic :: iso_c_binding
  implicit none
contains
  ! Keeps the operand that is larger in absolute value: not commutative where both are equal.
#ifdef F08
  subroutine larger(in, inout, length, datatype)
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    if (datatype /= MPI_INTEGER) error stop 2
    where (abs(a) >= abs(b)) b = a
  end subroutine
#else
  subroutine larger(a, b, length, datatype)
    integer :: length, datatype
    integer :: a(length), b(length)
    if (datatype /= MPI_INTEGER) error stop 2
    where (abs(a) >= abs(b)) b = a
  end subroutine
#endif
end module

program collectives
  use MPI_MODULE
  use operations
  use checks
  implicit none
  integer :: ierr, rank, size, i, number, total
  integer :: all(0:7), mine(0:7), counts(0:7), places(0:7)
  real :: single
  complex(kind=8) :: pair(2)
  logical :: flag, flags(2), commutes
  HANDLE(MPI_Op) :: op
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Datatype) :: types(0:7)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)

  single = merge(2.5, 0.0, rank == 0)
  call MPI_Bcast(single, 1, MPI_REAL, 0, MPI_COMM_WORLD, ierr)
  call check(single == 2.5, "MPI_Bcast")
  all = -1
  call MPI_Gather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) call check(all(size - 1) == size - 1, "MPI_Gather")
  all = -1
  all(rank) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(sum(all(0:size - 1)) == size * (size - 1) / 2, "MPI_Allgather in place")
  call MPI_Scatter(all, 1, MPI_INTEGER, number, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  call check(number == rank, "MPI_Scatter")
  counts = 1
  places = [(size - 1 - i, i = 0, 7)]
  call MPI_Allgatherv(rank, 1, MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(0) == size - 1, "MPI_Allgatherv")
  mine = rank
  call MPI_Alltoall(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(size - 1) == size - 1, "MPI_Alltoall")

  types = MPI_INTEGER
  places = [(4 * i, i = 0, 7)]
  all = -1
  call MPI_Alltoallw(mine, counts, places, types, all, counts, places, types, MPI_COMM_WORLD, ierr)
  call check(all(size - 1) == size - 1, "MPI_Alltoallw")
  all = -1
  call MPI_Ialltoallw(mine, counts, places, types, all, counts, places, types, MPI_COMM_WORLD, request, ierr)
  types = MPI_DATATYPE_NULL
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(size - 1) == size - 1, "MPI_Ialltoallw")
  all = [(i, i = 0, 7)]
  types = MPI_INTEGER
  call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types(0:0), all, counts, places, types, MPI_COMM_WORLD, ierr)
  call check(all(size - 1) == rank, "MPI_Alltoallw in place")

  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(total == size * (size + 1) / 2, "MPI_Allreduce")
  pair = (1d0, 2d0)
  call MPI_Allreduce(MPI_IN_PLACE, pair, 2, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(pair(2) == size * (1d0, 2d0), "complex numbers")
  call MPI_Allreduce(rank == 0, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call check(flag, "MPI_LOR")
  call MPI_Allreduce([rank == 0, .true.], flags, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call check(flags(2) .and. (flags(1) .eqv. size == 1), "MPI_LAND")
  call MPI_Reduce([rank, -rank], mine, 1, MPI_2INTEGER, MPI_MAXLOC, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) call check(mine(0) == size - 1 .and. mine(1) == 1 - size, "MPI_MAXLOC")
  call MPI_Scan(1, number, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(number == rank + 1, "MPI_Scan")
  mine = rank
  call MPI_Reduce_scatter_block(mine, number, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call check(number == size - 1, "MPI_Reduce_scatter_block")

  call MPI_Op_create(larger, .true., op, ierr)
  call MPI_Op_commutative(op, commutes, ierr)
  call check(commutes, "MPI_Op_commutative")
  call MPI_Allreduce(-rank, number, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call check(number == 1 - size, "an operation of the program")
  call MPI_Iallreduce(-rank, total, 1, MPI_INTEGER, op, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(total == 1 - size, "an operation of the program in MPI_Iallreduce")
  call MPI_Reduce_local([-5], total, 1, MPI_INTEGER, op, ierr)
  call check(total == merge(-5, total, size < 7), "MPI_Reduce_local")
  call MPI_Op_free(op, ierr)
  call check(op == MPI_OP_NULL, "MPI_Op_free")
  call MPI_Bcast_init(all, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
  all = rank
  call MPI_Start(request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(7) == 0, "MPI_Bcast_init")
  call MPI_Request_free(request, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
