## -*- texinfo -*-
## @deftypefn {} {@var{info} =} MPI_Init ()
## Join the job. Every rank calls this first, once.
## @seealso{MPI_Initialized, MPI_Finalize}
## @end deftypefn

function info = MPI_Init (varargin)
  if (! strcmp (mpi_state (), "before"))
    error ("limosa:other", "MPI_Init: MPI has been initialized already; MPI_Initialized tells whether it has");
  endif
  limosa_rank ();
  mpi_state ("within");
  info = 0;
endfunction
