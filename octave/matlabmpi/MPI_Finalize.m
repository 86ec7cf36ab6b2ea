## -*- texinfo -*-
## @deftypefn {} {} MPI_Finalize ()
## Say that this rank sends and receives no more. Rank 0 goes on with the lines that follow; all others end here.
##
## With @code{MPI_Run} rank 0 goes on only if it runs in the interpreter that has called it.
## @end deftypefn

function MPI_Finalize ()
  global MPI_COMM_WORLD;
  if (! isstruct (MPI_COMM_WORLD))
    error ("limosa:other", "MPI_Finalize: MPI_Init was not called");
  end
  matmpi_finish (MPI_COMM_WORLD);
  if (MPI_COMM_WORLD.rank != MPI_COMM_WORLD.host_rank)
    exit (0);
  end
end
