## -*- texinfo -*-
## @deftypefn  {} {@var{b} =} labSendReceive (@var{destination}, @var{source}, @var{a})
## @deftypefnx {} {@var{b} =} labSendReceive (@var{destination}, @var{source}, @var{a}, @var{tag})
## The older name of @code{spmdSendReceive}.
## @seealso{spmdSendReceive}
## @end deftypefn

function b = labSendReceive (varargin)
  b = spmdSendReceive (varargin{:});
endfunction
