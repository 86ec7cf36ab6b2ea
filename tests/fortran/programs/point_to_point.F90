#include "interface.inc"
program point_to_point
  use MPI_MODULE
  use checks
  implicit none
  integer :: ierr, rank, size, i, count, position, index, outcount, next, previous
  integer :: values(10), received(10), all(8), indices(8)
  integer(kind=MPI_ADDRESS_KIND) :: address
  real(kind=8), target :: space(100 + MPI_BSEND_OVERHEAD)
  character(len=12) :: text
  character(len=100) :: packed
  logical :: flag, cancelled
  STATUS(status)
  STATUSES(statuses, 8)
  HANDLE(MPI_Request) :: request, requests(8)
  HANDLE(MPI_Message) :: message

  call MPI_Init(ierr)
  call check(ierr == MPI_SUCCESS, "MPI_Init")
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)

  ! blocking calls, all types of arguments
  values = [(rank * 100 + i, i = 1, 10)]
  call MPI_Sendrecv(values, 10, MPI_INTEGER, next, 7, received, 10, MPI_INTEGER, previous, MPI_ANY_TAG, &
    MPI_COMM_WORLD, status, ierr)
  call check(all_equal(received, previous * 100), "MPI_Sendrecv")
  call check(SOURCE(status) == previous .and. TAG(status) == 7, "status of MPI_Sendrecv")
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  call check(count == 10, "MPI_Get_count")
  call MPI_Get_elements(status, MPI_INTEGER, count, ierr)
  call check(count == 10, "MPI_Get_elements")
  call MPI_Sendrecv_replace(received, 10, MPI_INTEGER, previous, 1, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all_equal(received, rank * 100), "MPI_Sendrecv_replace")

  ! strings, bytes, scalars, probes
  text = "nothing"
  call MPI_Isend("from the one", 12, MPI_CHARACTER, next, 2, MPI_COMM_WORLD, request, ierr)
  call MPI_Probe(previous, 2, MPI_COMM_WORLD, status, ierr)
  call MPI_Get_count(status, MPI_CHARACTER, count, ierr)
  call check(count == 12, "MPI_Probe")
  call MPI_Mprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, message, status, ierr)
  call MPI_Mrecv(text, 12, MPI_CHARACTER, message, MPI_STATUS_IGNORE, ierr)
  call check(text == "from the one" .and. message == MPI_MESSAGE_NULL, "MPI_Mrecv")
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(request == MPI_REQUEST_NULL, "MPI_Wait")
  call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, status, ierr)
  call check(.not. flag, "MPI_Iprobe")
  call MPI_Send(values, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierr)

  ! arrays of requests: requests are counted from 1
  do i = 1, 4
    call MPI_Irecv(all(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i), ierr)
    call MPI_Isend(values(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, requests(i + 4), ierr)
  end do
  call MPI_Waitall(8, requests, statuses, ierr)
  call check(all_equal(all(1:4), previous * 100) .and. SOURCE_OF(statuses, 4) == previous, "MPI_Waitall")
  call MPI_Waitany(8, requests, index, status, ierr)
  call check(index == MPI_UNDEFINED, "MPI_Waitany without requests")
  requests = MPI_REQUEST_NULL
  call MPI_Irecv(all(1), 1, MPI_INTEGER, previous, 20, MPI_COMM_WORLD, requests(3), ierr)
  call MPI_Testany(8, requests, index, flag, status, ierr)
  call MPI_Send(rank, 1, MPI_INTEGER, next, 20, MPI_COMM_WORLD, ierr)
  if (.not. flag) call MPI_Waitany(8, requests, index, status, ierr)
  call check(index == 3 .and. all(1) == previous, "MPI_Waitany")
  call MPI_Irecv(all(2), 1, MPI_INTEGER, previous, 21, MPI_COMM_WORLD, requests(5), ierr)
  call MPI_Send(rank, 1, MPI_INTEGER, next, 21, MPI_COMM_WORLD, ierr)
  call MPI_Waitsome(8, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
  call check(outcount == 1 .and. indices(1) == 5, "MPI_Waitsome")
  call MPI_Testsome(8, requests, outcount, indices, statuses, ierr)
  call check(outcount == MPI_UNDEFINED, "MPI_Testsome")
  call MPI_Testall(8, requests, flag, MPI_STATUSES_IGNORE, ierr)
  call check(flag, "MPI_Testall")

  ! persistent and cancelled requests
  call MPI_Send_init(rank, 1, MPI_INTEGER, next, 30, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Recv_init(all(3), 1, MPI_INTEGER, previous, 30, MPI_COMM_WORLD, requests(2), ierr)
  do i = 1, 2
    all(3) = -1
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(all(3) == previous, "MPI_Startall")
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  call check(requests(1) == MPI_REQUEST_NULL, "MPI_Request_free")
  call MPI_Irecv(all(3), 1, MPI_INTEGER, previous, 31, MPI_COMM_WORLD, request, ierr)
  call MPI_Cancel(request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Test_cancelled(status, cancelled, ierr)
  call check(cancelled, "MPI_Cancel")

  ! buffered sends, packing, addresses
  call MPI_Buffer_attach(space, 800 + MPI_BSEND_OVERHEAD, ierr)
  call MPI_Bsend(values, 10, MPI_INTEGER, next, 40, MPI_COMM_WORLD, ierr)
  call MPI_Recv(received, 10, MPI_INTEGER, previous, 40, MPI_COMM_WORLD, status, ierr)
  call check(all_equal(received, previous * 100), "MPI_Bsend")
  call detach()
  position = 0
  call MPI_Pack(values, 5, MPI_INTEGER, packed, 100, position, MPI_COMM_WORLD, ierr)
  call MPI_Pack([1.5d0], 1, MPI_DOUBLE_PRECISION, packed, 100, position, MPI_COMM_WORLD, ierr)
  call check(position == 28, "MPI_Pack")
  position = 0
  received = 0
  call MPI_Unpack(packed, 100, position, received, 5, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all_equal(received(1:5), rank * 100), "MPI_Unpack")
  address = 0
  call MPI_Pack_external_size("external32", 10, MPI_INTEGER, address, ierr)
  call check(address == 40, "MPI_Pack_external_size")
  address = 0
  call MPI_Pack_external("external32", values, 10, MPI_INTEGER, packed, 100_MPI_ADDRESS_KIND, address, ierr)
  call check(address == 40 .and. ichar(packed(4:4)) == mod(values(1), 256), "MPI_Pack_external")
  address = 0
  received = 0
  call MPI_Unpack_external("external32  ", packed, 100_MPI_ADDRESS_KIND, address, received, 10, MPI_INTEGER, ierr)
  call check(all_equal(received, rank * 100), "MPI_Unpack_external")

  ! absolute addresses
  call MPI_Get_address(values, address, ierr)
  call absolute(address)
  call partitioned()
  call MPI_Finalize(ierr)
  if (rank == 0) print *, "done"
contains
  logical function all_equal(numbers, start)
    integer, intent(in) :: numbers(:), start
    integer :: k
    all_equal = .true.
    do k = 1, ubound(numbers, 1)
      all_equal = all_equal .and. numbers(k) == start + k
    end do
  end function

  subroutine detach()
#ifdef F08
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: pointer
    integer :: length
    call MPI_Buffer_detach(pointer, length)
    call check(c_associated(pointer, c_loc(space)), "address of MPI_Buffer_detach")
#else
    real(kind=8) :: unused(1)
    integer :: length
    unused = 4
    call MPI_Buffer_detach(unused, length, ierr)
    call check(unused(1) == 4, "unused argument of MPI_Buffer_detach")
#endif
    call check(length == 800 + MPI_BSEND_OVERHEAD, "MPI_Buffer_detach")
  end subroutine

  subroutine absolute(where)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: where
    HANDLE(MPI_Datatype) :: block
    call MPI_Type_create_hindexed(1, [10], [where], MPI_INTEGER, block, ierr)
    call MPI_Type_commit(block, ierr)
    call MPI_Isend(MPI_BOTTOM, 1, block, next, 50, MPI_COMM_WORLD, request, ierr)
    call MPI_Recv(received, 10, MPI_INTEGER, previous, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Type_free(block, ierr)
    call check(all_equal(received, previous * 100) .and. block == MPI_DATATYPE_NULL, "MPI_BOTTOM")
    call check(MPI_Aint_diff(MPI_Aint_add(where, 8_MPI_ADDRESS_KIND), where) == 8, "MPI_Aint_add, MPI_Aint_diff")
  end subroutine

  subroutine partitioned()
    received = 0
    call MPI_Psend_init(values, 2, 5_MPI_COUNT_KIND, MPI_INTEGER, next, 60, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
    call MPI_Precv_init(received, 2, 5_MPI_COUNT_KIND, MPI_INTEGER, previous, 60, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(2), ierr)
    call MPI_Startall(2, requests, ierr)
    call MPI_Pready(1, requests(1), ierr)
    call MPI_Pready_list(1, [0], requests(1), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(all_equal(received, previous * 100), "partitioned communication")
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
  end subroutine
end program
