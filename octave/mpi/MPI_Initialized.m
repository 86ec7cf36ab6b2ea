## -*- texinfo -*-
## @deftypefn {} {[@var{flag}, @var{info}] =} MPI_Initialized ()
## Tell whether @code{MPI_Init} has been called.
## @end deftypefn

function [flag, info] = MPI_Initialized ()
  flag = ! strcmp (mpi_state (), "before");
  info = 0;
endfunction
