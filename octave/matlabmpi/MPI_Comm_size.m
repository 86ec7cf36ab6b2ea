## -*- texinfo -*-
## @deftypefn {} {@var{n} =} MPI_Comm_size (@var{comm})
## Return the number of ranks of a communicator.
## @end deftypefn

function n = MPI_Comm_size (comm)
  n = comm.size;
end
