#include "interface.inc"
module attributes
  use MPI_MODULE
  implicit none
  integer :: copies = 0, deletions = 0
contains
  subroutine copy(old, keyval, extra_state, value, new_value, flag, ierror)
    HANDLE(MPI_Comm) :: old
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value, new_value
    logical :: flag
    copies = copies + 1
    new_value = value + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine remove(comm, keyval, value, extra_state, ierror)
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    deletions = deletions + 1
    if (extra_state /= 1000 .or. mod(value, 1000_MPI_ADDRESS_KIND) /= 7) error stop 3
    ierror = MPI_SUCCESS
  end subroutine
end module

program communicators
  use MPI_MODULE
  use attributes
  use checks
  implicit none
  integer :: ierr, rank, size, number, keyval, i, length, ranks(8), ranges(3, 1)
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=3) :: short
  HANDLE(MPI_Group) :: world, part
  HANDLE(MPI_Comm) :: comm, twin, inter
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Win) :: win

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
  ranges(:, 1) = [size - 1, 0, -1]
  call MPI_Group_range_incl(world, 1, ranges, part, ierr)
  call MPI_Group_translate_ranks(part, size, [(i, i = 0, size - 1)], world, ranks, ierr)
  call check(ranks(1) == size - 1 .and. ranks(size) == 0, "MPI_Group_translate_ranks")
  call MPI_Comm_create(MPI_COMM_WORLD, part, comm, ierr)
  call MPI_Comm_rank(comm, number, ierr)
  call check(number == size - 1 - rank, "MPI_Comm_create")
  call MPI_Comm_compare(comm, MPI_COMM_WORLD, number, ierr)
  call check(number == merge(MPI_CONGRUENT, MPI_SIMILAR, size == 1), "MPI_Comm_compare")
  call MPI_Group_free(part, ierr)
  call check(part == MPI_GROUP_NULL, "MPI_Group_free")
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, comm, ierr)
  call MPI_Comm_size(comm, number, ierr)
  call check(number == (size + 1 - mod(rank, 2)) / 2, "MPI_Comm_split")
  call MPI_Comm_set_name(comm, "halves", ierr)
  name = repeat("x", MPI_MAX_OBJECT_NAME)
  call MPI_Comm_get_name(comm, name, length, ierr)
  call check(name == "halves" .and. length == 6, "MPI_Comm_get_name")
  call MPI_Comm_get_name(comm, short, length, ierr)
  call check(short == "hal" .and. length == 6, "a name in a short string")
  if (size > 1) then
    call MPI_Intercomm_create(comm, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 5, inter, ierr)
    call MPI_Comm_test_inter(inter, flag, ierr)
    call check(flag, "MPI_Comm_test_inter")
    call MPI_Intercomm_merge(inter, mod(rank, 2) == 1, twin, ierr)
    call MPI_Comm_free(twin, ierr)
    call MPI_Comm_free(inter, ierr)
  end if
  call MPI_Comm_free(comm, ierr)

  ! attributes
  call MPI_Comm_create_keyval(copy, remove, keyval, 1000_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_get_attr(comm, keyval, value, flag, ierr)
  call check(.not. flag, "an attribute that is not set")
  call MPI_Comm_set_attr(comm, keyval, 2000000000007_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(comm, twin, ierr)
  call MPI_Comm_get_attr(twin, keyval, value, flag, ierr)
  call check(flag .and. value == 2000000001007_MPI_ADDRESS_KIND .and. copies == 1, "a copied attribute")
  call MPI_Comm_get_attr(comm, keyval, value, flag, ierr)
  call check(flag .and. value == 2000000000007_MPI_ADDRESS_KIND, "an attribute")
  call MPI_Comm_delete_attr(comm, keyval, ierr)
  call check(deletions == 1, "MPI_Comm_delete_attr")
  call MPI_Comm_free(twin, ierr)
  call check(deletions == 2, "attributes of a freed communicator")
  call MPI_Comm_free_keyval(keyval, ierr)
  call check(keyval == MPI_KEYVAL_INVALID, "MPI_Comm_free_keyval")
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(comm, keyval, -5_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_idup(comm, twin, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_get_attr(twin, keyval, value, flag, ierr)
  call check(flag .and. value == -5, "MPI_COMM_DUP_FN")
  call MPI_Comm_free(twin, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call check(flag .and. value >= 32767 .and. value <= huge(rank), "MPI_TAG_UB")
  call MPI_Win_create(ranks, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == 32, "MPI_WIN_SIZE")
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call check(flag .and. value == 4, "MPI_WIN_DISP_UNIT")
  call MPI_Win_free(win, ierr)
  call MPI_Group_free(world, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
