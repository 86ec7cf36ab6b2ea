## -*- texinfo -*-
## @deftypefn  {} {} spmdSend (@var{a}, @var{destination})
## @deftypefnx {} {} spmdSend (@var{a}, @var{destination}, @var{tag})
## Send @var{a} to the worker with the index @var{destination}, or to each worker of a vector of indices. The tag is 0
## unless given.
##
## @example
## if (spmdIndex () == 1)
##   spmdSend (magic (3), 2:spmdSize (), 7);
## else
##   b = spmdReceive (1, 7);
## end
## @end example
## @seealso{spmdReceive, spmdSendReceive, limosa_send}
## @end deftypefn

function spmdSend (a, destination, tag = 0)
  if (nargin < 2)
    print_usage ();
  endif
  for to = arrayfun (@(index) __limosa_index__ (index, "spmdSend"), destination(:)')
    limosa_send (a, to, tag);
  endfor
endfunction
