! Heat on a square plate: a Cartesian grid of processes, halos by derived datatypes, compared with one process.
program heat
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: n = 24, steps = 60
  integer :: dims(2) = 0, coords(2), low, high, left, right, step, i0, j0, ni, nj, i, j, rank, size
  real(kind=8), allocatable :: u(:, :), old(:, :)
  real(kind=8) :: whole(0:n + 1, 0:n + 1), before(0:n + 1, 0:n + 1), difference, largest
  type(MPI_Comm) :: grid
  type(MPI_Datatype) :: row
  type(MPI_Request) :: requests(8)

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Dims_create(size, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .true., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_coords(grid, rank, 2, coords)
  call MPI_Cart_shift(grid, 0, 1, low, high)
  call MPI_Cart_shift(grid, 1, 1, left, right)
  i0 = n * coords(1) / dims(1)
  j0 = n * coords(2) / dims(2)
  ni = n * (coords(1) + 1) / dims(1) - i0
  nj = n * (coords(2) + 1) / dims(2) - j0
  allocate (u(0:ni + 1, 0:nj + 1), old(0:ni + 1, 0:nj + 1))
  call MPI_Type_vector(nj, 1, ni + 2, MPI_DOUBLE_PRECISION, row)
  call MPI_Type_commit(row)
  u = 0
  if (left == MPI_PROC_NULL) u(:, 0) = 100
  whole = 0
  whole(:, 0) = 100
  do step = 1, steps
    old = u
    call MPI_Irecv(old(0, 1), 1, row, low, 1, grid, requests(1))
    call MPI_Irecv(old(ni + 1, 1), 1, row, high, 2, grid, requests(2))
    call MPI_Irecv(old(1, 0), ni, MPI_DOUBLE_PRECISION, left, 3, grid, requests(3))
    call MPI_Irecv(old(1, nj + 1), ni, MPI_DOUBLE_PRECISION, right, 4, grid, requests(4))
    call MPI_Isend(u(1, 1), 1, row, low, 2, grid, requests(5))
    call MPI_Isend(u(ni, 1), 1, row, high, 1, grid, requests(6))
    call MPI_Isend(u(1, 1), ni, MPI_DOUBLE_PRECISION, left, 4, grid, requests(7))
    call MPI_Isend(u(1, nj), ni, MPI_DOUBLE_PRECISION, right, 3, grid, requests(8))
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
    u(1:ni, 1:nj) = (old(0:ni - 1, 1:nj) + old(2:ni + 1, 1:nj) + old(1:ni, 0:nj - 1) + old(1:ni, 2:nj + 1)) / 4
    before = whole
    forall (i = 1:n, j = 1:n) &
      whole(i, j) = (before(i - 1, j) + before(i + 1, j) + before(i, j - 1) + before(i, j + 1)) / 4
  end do
  difference = maxval(abs(u(1:ni, 1:nj) - whole(i0 + 1:i0 + ni, j0 + 1:j0 + nj)))
  call MPI_Allreduce(difference, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid)
  call check(largest == 0, "the plate")
  call MPI_Finalize()
  if (rank == 0) print *, "done"
end program
