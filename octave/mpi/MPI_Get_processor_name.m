## -*- texinfo -*-
## @deftypefn {} {[@var{name}, @var{length}, @var{info}] =} MPI_Get_processor_name ()
## Return the name of the host, and how long it is.
## @end deftypefn

function [name, length, info] = MPI_Get_processor_name ()
  name = gethostname ();
  length = numel (name);
  info = 0;
endfunction
