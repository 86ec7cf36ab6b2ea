## startup_MPITB
##
## A script for .octaverc: makes the toolbox known, and in a process that MPI_Comm_spawn has started says which start-up
## script fits. The folders of the toolbox are in the path already if Octave has found this file with its compiled part.

if exist ("MPI_Init") == 0
  error ("limosa:missing", "startup_MPITB: the compiled part is not in the path: pkg load limosa, then addpath mpitb");
end
if isempty (getenv ("MPITB_HOME"))
  setenv ("MPITB_HOME", fileparts (mfilename ("fullpath")));
end
