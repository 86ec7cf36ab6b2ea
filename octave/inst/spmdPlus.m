## -*- texinfo -*-
## @deftypefn  {} {@var{c} =} spmdPlus (@var{a})
## @deftypefnx {} {@var{c} =} spmdPlus (@var{a}, @var{destination})
## Add the arrays @var{a} of all workers, whose sizes must be compatible. With a destination, only this worker gets the
## sum, and all others get [].
##
## @example
## n = spmdPlus (1);    # spmdSize ()
## @end example
## @seealso{spmdReduce, limosa_allreduce}
## @end deftypefn

function c = spmdPlus (a, varargin)
  if (nargin < 1)
    print_usage ();
  endif
  c = spmdReduce (@plus, a, varargin{:});
endfunction
