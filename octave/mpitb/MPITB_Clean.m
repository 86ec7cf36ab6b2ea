## MPITB_Clean
##
## A script that finalises MPI if it is initialised, and forgets what programs keep in global variables. MPI cannot be
## initialised again afterwards: that takes a new Octave.

if nthargout (2, @MPI_Initialized) && ! nthargout (2, @MPI_Finalized)
  MPI_Finalize ();
end
clear -global NSLAVES NOCTAVES NEWORLD TAG SPAWN_INFO
