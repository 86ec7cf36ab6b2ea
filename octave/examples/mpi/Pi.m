## Pi with the functions of Octave's package mpi: each rank adds up a part of the integral of 4 / (1 + x^2), and rank 0
## receives the sums.
##
##   limosa run -n 4 --dialect mpi Pi.m

MPI_Init ();
comm = MPI_COMM_WORLD;
my_rank = MPI_Comm_rank (comm);
p = MPI_Comm_size (comm);

n = 1e6;
x = ((my_rank + 0.5):p:n) / n;
part = sum (4 ./ (1 + x .^ 2)) / n;
if (my_rank != 0)
  MPI_Send (part, 0, 1, comm);
else
  for source = 1:p - 1
    part += MPI_Recv (source, 1, comm);
  endfor
  printf ("pi is %.10f\n", part);
  if (abs (part - pi) > 5e-10)
    error ("the error is %g", abs (part - pi));
  endif
endif
MPI_Finalize ();
