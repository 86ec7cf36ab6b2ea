## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} gop (@var{f}, @var{a})
## @deftypefnx {} {@var{b} =} gop (@var{f}, @var{a}, @var{destination})
## The older name of @code{spmdReduce}.
## @seealso{spmdReduce}
## @end deftypefn

function b = gop (varargin)
  b = spmdReduce (varargin{:});
endfunction
