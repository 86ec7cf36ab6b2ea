## -*- texinfo -*-
## @deftypefn {} {@var{n} =} spmdSize ()
## Return the number of workers, which are the ranks of the job.
##
## @example
## is_last = spmdIndex () == spmdSize ();
## @end example
## @seealso{spmdIndex, limosa_spmd}
## @end deftypefn

function n = spmdSize ()
  n = double (limosa_size ());
endfunction
