## -*- texinfo -*-
## @deftypefn {} {@var{comm} =} MPI_Comm_Load (@var{name})
## Return the communicator of all ranks: what @code{MPI_COMM_WORLD} was called in early versions of the package. The
## name means nothing.
## @end deftypefn

function comm = MPI_Comm_Load (name)
  comm = limosa_world ();
endfunction
