#include "interface.inc"
program one_sided
  use MPI_MODULE
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ierr, rank, size, next, previous, number, old, unit
  integer :: window(4), got(4)
  integer, pointer :: memory(:)
  integer(kind=MPI_ADDRESS_KIND) :: length
  type(c_ptr) :: base
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Comm) :: node
  HANDLE(MPI_Group) :: group
  HANDLE(MPI_Request) :: request
  STATUS(status)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)
  window = rank
  call MPI_Win_create(window, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put([100 + rank], 1, MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
  call MPI_Accumulate([1, 1], 2, MPI_INTEGER, next, 2_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(window(2) == 100 + previous .and. window(3) == rank + 1, "MPI_Put, MPI_Accumulate")
  call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win, ierr)
  call MPI_Get(got, 4, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, win, ierr)
  call MPI_Win_unlock(next, win, ierr)
  call check(got(1) == next .and. got(2) == 100 + rank, "MPI_Get")
  call MPI_Win_lock_all(0, win, ierr)
  call MPI_Rget(number, 1, MPI_INTEGER, previous, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, request, ierr)
  call MPI_Wait(request, status, ierr)
  call check(number == 100 + mod(previous + size - 1, size), "MPI_Rget")
  call MPI_Win_unlock_all(win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierr)
  call MPI_Fetch_and_op(5, old, MPI_INTEGER, 0, 3_MPI_ADDRESS_KIND, MPI_SUM, win, ierr)
  call MPI_Win_flush(0, win, ierr)
  call check(mod(old - 1, 5) == 0, "MPI_Fetch_and_op")
  call MPI_Win_unlock(0, win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) call check(window(4) == 1 + 5 * size, "the sum of MPI_Fetch_and_op")
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Win_post(group, 0, win, ierr)
  call MPI_Win_start(group, 0, win, ierr)
  call MPI_Win_complete(win, ierr)
  call MPI_Win_wait(win, ierr)
  call MPI_Win_free(win, ierr)
  call check(win == MPI_WIN_NULL, "MPI_Win_free")

  ! memory from MPI, by a pointer of C
  call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, ierr)
  call c_f_pointer(base, memory, [20])
  memory = 7
  call MPI_Free_mem(memory, ierr)
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, ierr)
  call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, node, base, win, ierr)
  call c_f_pointer(base, memory, [2])
  call MPI_Win_fence(0, win, ierr)
  memory = rank
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_shared_query(win, 0, length, unit, base, ierr)
  call c_f_pointer(base, memory, [2])
  call check(memory(2) == 0 .and. unit == 4 .and. length == 8, "MPI_Win_shared_query")
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
