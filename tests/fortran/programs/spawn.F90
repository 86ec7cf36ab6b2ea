#include "interface.inc"
! Starts itself: two processes with arguments, then one for each of two commands.
program spawn
  use MPI_MODULE
  use checks
  implicit none
  integer :: ierr, rank, size, number, codes(2)
  character(len=200) :: command
  character(len=8) :: argv(3), many(2, 2), argument
  HANDLE(MPI_Comm) :: parent, children

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) then
    call get_command_argument(1, argument)
    number = merge(rank, 100, argument == "first")
    if (command_argument_count() == 2) number = 10
    call MPI_Send(number, 1, MPI_INTEGER, 0, rank, parent, ierr)
    call MPI_Comm_disconnect(parent, ierr)
  else
    call get_command_argument(0, command)
    argv = [character(len=8) :: "first", "second", " "]
    argv(2) = " "
    call MPI_Comm_spawn(command, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, ierr)
    call check(ierr == MPI_SUCCESS .and. all(codes == MPI_SUCCESS), "MPI_Comm_spawn")
    if (rank == 0) call sum_of(2, 1)
    call MPI_Comm_disconnect(children, ierr)
    many(:, 1) = [character(len=8) :: "first", "other"]
    many(:, 2) = " "
    call MPI_Comm_spawn_multiple(2, [command, command], many, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, &
      children, MPI_ERRCODES_IGNORE, ierr)
    if (rank == 0) call sum_of(2, 100)
    call MPI_Comm_disconnect(children, ierr)
    call MPI_Comm_spawn(command, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
    if (rank == 0) call sum_of(1, 100)
    call MPI_Comm_disconnect(children, ierr)
    if (rank == 0) print *, "done"
  end if
  call MPI_Finalize(ierr)
contains
  subroutine sum_of(count, expected)
    integer, intent(in) :: count, expected
    integer :: i, total
    total = 0
    do i = 0, count - 1
      call MPI_Recv(number, 1, MPI_INTEGER, i, i, children, MPI_STATUS_IGNORE, ierr)
      total = total + number
    end do
    call check(total == expected, "arguments of started programs")
  end subroutine
end program
