#include "interface.inc"
module callbacks
  use MPI_MODULE
  implicit none
  integer :: handled = 0, class_seen = 0, freed = 0, queried = 0, cancelled = 0
contains
  subroutine handle(comm, code)
    HANDLE(MPI_Comm) :: comm
    integer :: code, ierr
    handled = handled + 1
    if (comm /= MPI_COMM_SELF) error stop 4
    call MPI_Error_class(code, class_seen, ierr)
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    STATUS(status)
    integer :: ierror
    queried = int(extra_state)
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    SOURCE(status) = 5
    TAG(status) = 6
  end subroutine

  subroutine release(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    cancelled = merge(1, 2, complete)
    ierror = MPI_SUCCESS
  end subroutine
end module

program environment
  use MPI_MODULE
  use callbacks
  use checks
  implicit none
  integer :: ierr, rank, provided, version, subversion, length, keys, class, code, number
  double precision :: start
  logical :: flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: processor
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=MPI_MAX_INFO_KEY) :: key
  character(len=20) :: value
  HANDLE(MPI_Info) :: info, twin
  HANDLE(MPI_Errhandler) :: handler
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Session) :: session
  HANDLE(MPI_Group) :: group
  HANDLE(MPI_Comm) :: comm
  STATUS(status)

  call MPI_Initialized(flag, ierr)
  call check(.not. flag, "MPI_Initialized")
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided, ierr)
  call check(provided >= MPI_THREAD_SERIALIZED, "MPI_Init_thread")
  call MPI_Is_thread_main(flag, ierr)
  call check(flag, "MPI_Is_thread_main")
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  start = MPI_Wtime()
  call check(MPI_Wtime() >= start .and. MPI_Wtick() > 0 .and. PMPI_Wtime() >= start, "MPI_Wtime")
  call MPI_Get_version(version, subversion, ierr)
  call check(version == MPI_VERSION .and. subversion == MPI_SUBVERSION, "MPI_Get_version")
  call MPI_Abi_get_version(version, subversion, ierr)
  call check(version == 1, "MPI_Abi_get_version")
  call MPI_Get_processor_name(processor, length, ierr)
  call check(len_trim(processor) == length, "MPI_Get_processor_name")
  call MPI_Get_library_version(library, length, ierr)
  call check(len_trim(library) == length .and. index(library, char(0)) == 0, "MPI_Get_library_version")

  ! info objects: blanks at both ends of keys and values do not count
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, "  colour ", " blue  ", ierr)
  call MPI_Info_set(info, "shape", "round", ierr)
  call MPI_Info_get_nkeys(info, keys, ierr)
  call check(keys == 2, "MPI_Info_get_nkeys")
  call MPI_Info_get_nthkey(info, 0, key, ierr)
  call check(key == "colour" .or. key == "shape", "MPI_Info_get_nthkey")
  length = 20
  value = "unchanged"
  call MPI_Info_get_string(info, "size", length, value, flag, ierr)
  call check(.not. flag .and. value == "unchanged", "a key that is not set")
  call MPI_Info_get_string(info, "colour", length, value, flag, ierr)
  call check(flag .and. value == "blue" .and. length == 4, "MPI_Info_get_string")
  length = 0
  call MPI_Info_get_string(info, "shape", length, value, flag, ierr)
  call check(flag .and. value == "blue" .and. length == 5, "the length of a value")
  call MPI_Info_get(info, "shape", 3, value, flag, ierr)
  call check(flag .and. value == "rou", "MPI_Info_get")
  call MPI_Info_dup(info, twin, ierr)
  call MPI_Info_delete(twin, "shape", ierr)
  call MPI_Info_get_valuelen(info, "shape", length, flag, ierr)
  call check(flag .and. length == 5, "MPI_Info_get_valuelen")
  call MPI_Info_free(twin, ierr)
  call MPI_Info_free(info, ierr)
  call MPI_Info_create_env(info, ierr)
  call MPI_Info_free(info, ierr)
  call check(info == MPI_INFO_NULL, "MPI_Info_free")

  ! errors
  call MPI_Comm_create_errhandler(handle, handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler, ierr)
  call MPI_Send(rank, 1, MPI_INTEGER, 77, 0, MPI_COMM_SELF, ierr)
  call check(handled == 1 .and. class_seen == MPI_ERR_RANK, "an error handler of the program")
  code = ierr
  call MPI_Error_class(code, class, ierr)
  call check(class == MPI_ERR_RANK, "the error code of a call")
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call MPI_Add_error_class(class, ierr)
  call MPI_Add_error_code(class, code, ierr)
  call MPI_Add_error_string(code, "out of cheese   ", ierr)
  call MPI_Error_string(code, text, length, ierr)
  call check(text == "out of cheese" .and. length == 13, "MPI_Error_string")
  call MPI_Error_class(code, number, ierr)
  call check(number == class, "MPI_Error_class")

  ! generalized requests
  call MPI_Grequest_start(query, release, cancel, 42_MPI_ADDRESS_KIND, request, ierr)
  call MPI_Test(request, flag, status, ierr)
  call check(.not. flag, "a generalized request that is not complete")
  call MPI_Cancel(request, ierr)
  call check(cancelled == 2, "MPI_Cancel of a generalized request")
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, status, ierr)
  call check(queried == 42 .and. freed == 42 .and. SOURCE(status) == 5 .and. TAG(status) == 6, "MPI_Grequest_start")
  call MPI_Get_count(status, MPI_INTEGER, number, ierr)
  call check(number == 3, "MPI_Status_set_elements")

  ! sessions
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
  call MPI_Session_get_num_psets(session, MPI_INFO_NULL, number, ierr)
  length = 0
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, text, ierr)
  call check(number >= 2 .and. length >= 10, "MPI_Session_get_num_psets")
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, text, ierr)
  call check(len_trim(text) == length, "MPI_Session_get_nth_pset")
  call MPI_Group_from_session_pset(session, "mpi://WORLD", group, ierr)
  call MPI_Comm_create_from_group(group, "tests of sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierr)
  call MPI_Comm_rank(comm, number, ierr)
  call check(number == rank, "MPI_Comm_create_from_group")
  call MPI_Comm_free(comm, ierr)
  call MPI_Group_free(group, ierr)
  call MPI_Session_finalize(session, ierr)
  call MPI_Pcontrol(1)
  call MPI_Finalize(ierr)
  call MPI_Finalized(flag, ierr)
  call check(flag, "MPI_Finalized")
  if (rank == 0) print *, "done"
end program
