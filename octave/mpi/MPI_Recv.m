## -*- texinfo -*-
## @deftypefn {} {[@var{value}, @var{info}] =} MPI_Recv (@var{source}, @var{tag}, @var{comm})
## Wait for a value, and return it. A source or tag of -1 means any.
##
## @example
## MPI_Send (1:3, MPI_Comm_rank (MPI_COMM_WORLD), 2, MPI_COMM_WORLD);
## value = MPI_Recv (MPI_Comm_rank (MPI_COMM_WORLD), 2, MPI_COMM_WORLD);   # 1 2 3
## @end example
## @seealso{MPI_Send, MPI_Probe}
## @end deftypefn

function [value, info] = MPI_Recv (varargin)
  comm = mpi_check ("MPI_Recv", 3, varargin);
  value = limosa_recv (mpi_any (varargin{1}), mpi_any (varargin{2}), comm);
  info = 0;
endfunction
