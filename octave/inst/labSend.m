## -*- texinfo -*-
## @deftypefn  {} {} labSend (@var{a}, @var{destination})
## @deftypefnx {} {} labSend (@var{a}, @var{destination}, @var{tag})
## The older name of @code{spmdSend}.
## @seealso{spmdSend}
## @end deftypefn

function labSend (varargin)
  spmdSend (varargin{:});
endfunction
