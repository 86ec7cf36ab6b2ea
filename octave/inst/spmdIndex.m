## -*- texinfo -*-
## @deftypefn {} {@var{index} =} spmdIndex ()
## Return the number of this worker, from 1 on: its rank plus 1.
##
## @example
## printf ("worker %d of %d\n", spmdIndex (), spmdSize ());
## @end example
## @seealso{spmdSize, limosa_spmd}
## @end deftypefn

function index = spmdIndex ()
  index = double (limosa_rank ()) + 1;
endfunction
