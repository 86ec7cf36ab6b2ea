## -*- texinfo -*-
## @deftypefn {} {@var{info} =} MPI_Finalize ()
## Leave the job. Every rank calls this last; the script goes on, without MPI.
## @end deftypefn

function info = MPI_Finalize ()
  mpi_check ("MPI_Finalize", 1, {});
  mpi_state ("after");
  __limosa_finish__ ();
  info = 0;
endfunction
