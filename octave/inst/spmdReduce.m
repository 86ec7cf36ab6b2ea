## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} spmdReduce (@var{f}, @var{a})
## @deftypefnx {} {@var{b} =} spmdReduce (@var{f}, @var{a}, @var{destination})
## Combine the values @var{a} of all workers by the function @var{f} of two values, in the order of their indices. With
## a destination, only this worker gets the result, and all others get [].
##
## @example
## largest = spmdReduce (@@max, spmdIndex ());   # spmdSize ()
## @end example
## @seealso{spmdPlus, spmdCat, limosa_allreduce}
## @end deftypefn

function b = spmdReduce (f, a, destination)
  if (nargin < 2)
    print_usage ();
  endif
  if (ischar (f))
    f = str2func (f);
  endif
  if (nargin < 3)
    values = limosa_allgather ({a});
  else
    values = limosa_gather ({a}, __limosa_index__ (destination, "spmdReduce"));
  endif
  b = [];
  if (! isempty (values))
    b = values{1}{1};
    for k = 2:numel (values)
      b = f (b, values{k}{1});
    endfor
  endif
endfunction
