## -*- texinfo -*-
## @deftypefn {} {@var{info} =} MPI_Send (@var{value}, @var{ranks}, @var{tag}, @var{comm})
## Send a value of any class to a rank, or to each of a vector of ranks.
##
## @example
## if (MPI_Comm_rank (MPI_COMM_WORLD) == 0)
##   MPI_Send (@{magic(3), "name"@}, 0:MPI_Comm_size (MPI_COMM_WORLD) - 1, 1, MPI_COMM_WORLD);
## endif
## value = MPI_Recv (0, 1, MPI_COMM_WORLD);
## @end example
## @seealso{MPI_Recv}
## @end deftypefn

function info = MPI_Send (varargin)
  comm = mpi_check ("MPI_Send", 4, varargin);
  [value, ranks, tag] = varargin{1:3};
  if (! isnumeric (ranks) || isempty (ranks))
    error ("limosa:arg", "MPI_Send: the second argument is the rank, or a vector of ranks, to send to");
  endif
  if (isscalar (ranks))
    limosa_send (value, ranks, tag, comm);
  else
    requests = arrayfun (@(rank) limosa_isend (value, rank, tag, comm), ranks(:)');
    limosa_waitall (requests);
  endif
  info = 0;
endfunction
