## -*- texinfo -*-
## @deftypefn  {} {[@var{found}, @var{source}, @var{tag}] =} labProbe ()
## @deftypefnx {} {[@var{found}, @var{source}, @var{tag}] =} labProbe (@var{source})
## @deftypefnx {} {[@var{found}, @var{source}, @var{tag}] =} labProbe (@var{source}, @var{tag})
## The older name of @code{spmdProbe}.
## @seealso{spmdProbe}
## @end deftypefn

function varargout = labProbe (varargin)
  [varargout{1:max (nargout, 1)}] = spmdProbe (varargin{:});
endfunction
