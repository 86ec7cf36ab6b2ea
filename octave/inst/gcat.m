## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} gcat (@var{a})
## @deftypefnx {} {@var{b} =} gcat (@var{a}, @var{dim})
## @deftypefnx {} {@var{b} =} gcat (@var{a}, @var{dim}, @var{destination})
## The older name of @code{spmdCat}.
## @seealso{spmdCat}
## @end deftypefn

function b = gcat (varargin)
  b = spmdCat (varargin{:});
endfunction
