#include "interface.inc"
module handlers
  use MPI_MODULE
  implicit none
  integer :: handled = 0
contains
  subroutine handle(file, code)
    HANDLE(MPI_File) :: file
    integer :: code
    handled = handled + 1
    if (file /= MPI_FILE_NULL .or. code == MPI_SUCCESS) error stop 5
  end subroutine
end module

program files
  use MPI_MODULE
  use handlers
  use checks
  implicit none
  integer :: ierr, rank, size, i, values(4), got(4), amode, count
  integer(kind=MPI_OFFSET_KIND) :: offset
  character(len=40) :: name
  character(len=MPI_MAX_DATAREP_STRING) :: representation
  logical :: flag
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Datatype) :: etype, filetype
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Errhandler) :: handler
  STATUS(status)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  name = "a file with blanks"
  values = [(10 * rank + i, i = 1, 4)]
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
  call check(ierr == MPI_SUCCESS, "MPI_File_open")
  call MPI_File_write_at_all(file, 16_MPI_OFFSET_KIND * rank, values, 4, MPI_INTEGER, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  call check(count == 4, "status of MPI_File_write_at_all")
  call MPI_File_sync(file, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_iread_at(file, 16_MPI_OFFSET_KIND * mod(rank + 1, size), got, 4, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(got(4) == 10 * mod(rank + 1, size) + 4, "MPI_File_iread_at")
  call MPI_File_get_size(file, offset, ierr)
  call check(offset == 16 * size, "MPI_File_get_size")
  call MPI_Type_vector(4, 1, size, MPI_INTEGER, filetype, ierr)
  call MPI_Type_commit(filetype, ierr)
  call MPI_File_set_view(file, 4_MPI_OFFSET_KIND * rank, MPI_INTEGER, filetype, "native", MPI_INFO_NULL, ierr)
  call MPI_Type_free(filetype, ierr)
  call MPI_File_get_view(file, offset, etype, filetype, representation, ierr)
  call check(offset == 4 * rank .and. representation == "native", "MPI_File_get_view")
  call MPI_File_write_all_begin(file, values, 4, MPI_INTEGER, ierr)
  call MPI_File_write_all_end(file, values, status, ierr)
  call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
  call MPI_File_read_all(file, got, 4, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call check(all(got == values), "MPI_File_read_all")
  call MPI_File_get_amode(file, amode, ierr)
  call check(iand(amode, MPI_MODE_RDWR) /= 0, "MPI_File_get_amode")
  call MPI_File_set_atomicity(file, .true., ierr)
  call MPI_File_get_atomicity(file, flag, ierr)
  call check(flag, "MPI_File_get_atomicity")
  call MPI_File_close(file, ierr)
  call check(file == MPI_FILE_NULL, "MPI_File_close")
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) call MPI_File_delete("a file with blanks   ", MPI_INFO_NULL, ierr)
  call check(ierr == MPI_SUCCESS, "MPI_File_delete")

  call MPI_File_create_errhandler(handle, handler, ierr)
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler, ierr)
  call MPI_File_open(MPI_COMM_SELF, "no/such/folder/file", MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
  call check(ierr /= MPI_SUCCESS .and. handled == 1, "an error handler of files")
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
end program
