## pm_start (): what happens when a program asks for the first time which rank it is: in a job (of limosa run, mpiexec
## ...) pMatlab_Init, otherwise pMatlabGlobalsInit.
function pm_start ()
  global MPI_COMM_WORLD
  launched = cellfun (@(name) ! isempty (getenv (name)), {"LIMOSA_RANK", "PMI_RANK", "PMIX_RANK"});
  if (isstruct (MPI_COMM_WORLD) || any (launched))
    pm_begin ();
  else
    pm_serial ();
  endif
endfunction
