## -*- texinfo -*-
## @deftypefn {} {[@var{rank}, @var{info}] =} MPI_Comm_rank (@var{comm})
## Return the number of this process, from 0.
##
## @example
## my_rank = MPI_Comm_rank (MPI_COMM_WORLD);
## @end example
## @end deftypefn

function [rank, info] = MPI_Comm_rank (varargin)
  rank = limosa_rank (mpi_check ("MPI_Comm_rank", 1, varargin));
  info = 0;
endfunction
