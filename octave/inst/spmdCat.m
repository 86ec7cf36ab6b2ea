## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} spmdCat (@var{a})
## @deftypefnx {} {@var{b} =} spmdCat (@var{a}, @var{dim})
## @deftypefnx {} {@var{b} =} spmdCat (@var{a}, @var{dim}, @var{destination})
## Concatenate the arrays @var{a} of all workers along the dimension @var{dim} (default 2), in the order of their
## indices. With a destination, only this worker gets the result, and all others get [].
##
## @example
## indices = spmdCat (spmdIndex ());     # 1:spmdSize ()
## @end example
## @seealso{spmdReduce, limosa_allgather}
## @end deftypefn

function b = spmdCat (a, dim = 2, varargin)
  if (nargin < 1)
    print_usage ();
  endif
  b = spmdReduce (@(x, y) cat (dim, x, y), a, varargin{:});
endfunction
