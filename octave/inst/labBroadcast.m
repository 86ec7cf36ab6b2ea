## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} labBroadcast (@var{source}, @var{a})
## @deftypefnx {} {@var{b} =} labBroadcast (@var{source})
## The older name of @code{spmdBroadcast}.
## @seealso{spmdBroadcast}
## @end deftypefn

function b = labBroadcast (varargin)
  b = spmdBroadcast (varargin{:});
endfunction
