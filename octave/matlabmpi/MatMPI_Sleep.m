## -*- texinfo -*-
## @deftypefn {} {} MatMPI_Sleep ()
## Wait for 10 ms.
## @end deftypefn

function MatMPI_Sleep ()
  pause (0.01);
end
