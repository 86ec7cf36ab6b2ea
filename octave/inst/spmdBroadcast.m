## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} spmdBroadcast (@var{source}, @var{a})
## @deftypefnx {} {@var{b} =} spmdBroadcast (@var{source})
## Send @var{a} of the worker with the index @var{source} to all workers. All of them call it; the others leave @var{a}
## out.
##
## @example
## if (spmdIndex () == 1)
##   b = spmdBroadcast (1, magic (3));
## else
##   b = spmdBroadcast (1);
## end
## @end example
## @seealso{spmdSend, limosa_bcast}
## @end deftypefn

function b = spmdBroadcast (source, a = [])
  if (nargin < 1)
    print_usage ();
  endif
  root = __limosa_index__ (source, "spmdBroadcast");
  if (root == limosa_rank () && nargin < 2)
    error ("limosa:arg", "spmdBroadcast: worker %d, the source, must give the value", source);
  endif
  b = limosa_bcast (a, root);
endfunction
