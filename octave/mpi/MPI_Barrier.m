## -*- texinfo -*-
## @deftypefn {} {@var{info} =} MPI_Barrier (@var{comm})
## Wait until all ranks have called this.
## @end deftypefn

function info = MPI_Barrier (varargin)
  limosa_barrier (mpi_check ("MPI_Barrier", 1, varargin));
  info = 0;
endfunction
