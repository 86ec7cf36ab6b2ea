## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} spmdSendReceive (@var{destination}, @var{source}, @var{a})
## @deftypefnx {} {@var{b} =} spmdSendReceive (@var{destination}, @var{source}, @var{a}, @var{tag})
## Send @var{a} to the worker @var{destination} and receive the value of the worker @var{source} at the same time. With
## [] as destination nothing is sent; with [] as source nothing is received, and @var{b} is [].
##
## @example
## right = mod (spmdIndex (), spmdSize ()) + 1;
## left = mod (spmdIndex () - 2, spmdSize ()) + 1;
## b = spmdSendReceive (right, left, spmdIndex ());   # b is left
## @end example
## @seealso{spmdSend, spmdReceive, limosa_sendrecv}
## @end deftypefn

function b = spmdSendReceive (destination, source, a, tag = 0)
  if (nargin < 3)
    print_usage ();
  endif
  b = requests = [];
  if (! isempty (destination))
    requests = limosa_isend (a, __limosa_index__ (destination, "spmdSendReceive"), tag);
  endif
  if (! isempty (source))
    b = limosa_recv (__limosa_index__ (source, "spmdSendReceive"), tag);
  endif
  if (! isempty (requests))
    limosa_wait (requests);
  endif
endfunction
