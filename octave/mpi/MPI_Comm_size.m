## -*- texinfo -*-
## @deftypefn {} {[@var{size}, @var{info}] =} MPI_Comm_size (@var{comm})
## Return how many processes there are.
##
## @example
## p = MPI_Comm_size (MPI_COMM_WORLD);
## @end example
## @end deftypefn

function [size, info] = MPI_Comm_size (varargin)
  size = limosa_size (mpi_check ("MPI_Comm_size", 1, varargin));
  info = 0;
endfunction
