## -*- texinfo -*-
## @deftypefn  {} {[@var{b}, @var{source}, @var{tag}] =} labReceive ()
## @deftypefnx {} {[@var{b}, @var{source}, @var{tag}] =} labReceive (@var{source})
## @deftypefnx {} {[@var{b}, @var{source}, @var{tag}] =} labReceive (@var{source}, @var{tag})
## The older name of @code{spmdReceive}.
## @seealso{spmdReceive}
## @end deftypefn

function varargout = labReceive (varargin)
  [varargout{1:max (nargout, 1)}] = spmdReceive (varargin{:});
endfunction
