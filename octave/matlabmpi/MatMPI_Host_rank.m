## -*- texinfo -*-
## @deftypefn {} {@var{r} =} MatMPI_Host_rank (@var{comm})
## Return the rank that runs in the interpreter that has called @code{MPI_Run}: 0, or -1 if all ranks run in the
## background.
## @end deftypefn

function r = MatMPI_Host_rank (comm)
  r = comm.host_rank;
end
