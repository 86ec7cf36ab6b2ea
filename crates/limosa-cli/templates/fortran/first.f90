! A first program with MPI: the ranks compute the area of the unit circle together.
!
!     make && limosa run -n 4 ./first
!
! Limosa starts the program 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
! computes reaches the other ranks by messages.

program first
  use mpi_f08
  implicit none
  integer, parameter :: steps = 100000
  integer :: rank, ranks, strip
  double precision :: x, own_part, area

  call MPI_Init()                            ! before all other calls of MPI
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)   ! the number of this rank, from 0
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)  ! the number of ranks

  ! The area consists of strips of width 1/steps under the quarter circle. The ranks deal out the strips: with 4 ranks,
  ! rank 1 computes the strips 1, 5, 9, ...
  own_part = 0
  do strip = rank, steps - 1, ranks
    x = (strip + 0.5d0) / steps
    own_part = own_part + 4d0 / steps * sqrt(1 - x * x)
  end do
  ! Adds up the parts of all ranks; each rank gets the sum. All ranks must make this call, otherwise it waits.
  call MPI_Allreduce(own_part, area, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)

  ! All ranks have come here. If each printed the result, it would appear once for each rank.
  if (rank == 0) print '(a, i0, a, f7.5)', 'the area of the unit circle, by ', ranks, ' ranks, is ', area
  call MPI_Finalize()                        ! after all other calls of MPI
end program first
