## -*- texinfo -*-
## @deftypefn {} {[@var{flag}, @var{info}] =} MPI_Finalized ()
## Tell whether @code{MPI_Finalize} has been called.
## @end deftypefn

function [flag, info] = MPI_Finalized ()
  flag = strcmp (mpi_state (), "after");
  info = 0;
endfunction
