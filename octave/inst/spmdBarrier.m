## -*- texinfo -*-
## @deftypefn {} {} spmdBarrier ()
## Wait until all workers have called it.
##
## @example
## spmdBarrier ();
## @end example
## @seealso{limosa_barrier}
## @end deftypefn

function spmdBarrier ()
  limosa_barrier ();
endfunction
