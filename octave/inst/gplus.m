## -*- texinfo -*-
## @deftypefn  {} {@var{c} =} gplus (@var{a})
## @deftypefnx {} {@var{c} =} gplus (@var{a}, @var{destination})
## The older name of @code{spmdPlus}.
## @seealso{spmdPlus}
## @end deftypefn

function c = gplus (varargin)
  c = spmdPlus (varargin{:});
endfunction
