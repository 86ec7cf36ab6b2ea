## -*- texinfo -*-
## @deftypefn {} {@var{comm} =} MPI_COMM_WORLD ()
## Return the communicator of all ranks.
## @end deftypefn

function comm = MPI_COMM_WORLD ()
  comm = limosa_world ();
endfunction
