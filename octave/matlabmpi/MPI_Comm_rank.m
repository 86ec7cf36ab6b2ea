## -*- texinfo -*-
## @deftypefn {} {@var{r} =} MPI_Comm_rank (@var{comm})
## Return the rank of this process in a communicator, from 0.
## @end deftypefn

function r = MPI_Comm_rank (comm)
  r = comm.rank;
end
