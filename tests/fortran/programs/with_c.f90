! Fortran and C in one program.
program with_c
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function sends_in_c() bind(C)
      import
      integer(c_int) :: sends_in_c
    end function
    function new_key_in_c() bind(C)
      import
      integer(c_int) :: new_key_in_c
    end function
    subroutine set_in_c(comm, keyval, value) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t), value :: value
    end subroutine
    function get_in_c(comm, keyval) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t) :: get_in_c
    end function
    function source_in_c(status) bind(C)
      import
      integer(c_int) :: status(*), source_in_c
    end function
  end interface
  integer :: rank, keyval, old(MPI_STATUS_SIZE), number
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag
  type(MPI_Comm) :: twin
  type(MPI_Status) :: status
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  keyval = new_key_in_c()
  call set_in_c(MPI_COMM_WORLD%MPI_VAL, keyval, 4000000000000_MPI_ADDRESS_KIND)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag)
  call check(flag .and. value == 4000000000000_MPI_ADDRESS_KIND, "an attribute of C in Fortran")
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 5000000000000_MPI_ADDRESS_KIND)
  call check(get_in_c(MPI_COMM_WORLD%MPI_VAL, keyval) == 5000000000000_MPI_ADDRESS_KIND, "an attribute of Fortran in C")
  call MPI_Comm_dup(MPI_COMM_WORLD, twin)
  call check(get_in_c(twin%MPI_VAL, keyval) == 5000000000000_MPI_ADDRESS_KIND, "a handle of Fortran in C")
  call MPI_Comm_free(twin)

  call MPI_Irecv(number, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, request)
  call MPI_Send(rank, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD)
  call PMPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call MPI_Wait(request, status)
  call check(sends_in_c() == 1, "a tool that defines MPI_Send in C")
  call MPI_Status_f082f(status, old)
  call check(source_in_c(old) == rank, "a status of Fortran in C")
  call MPI_Finalize()
  if (rank == 0) print *, "done"
end program
