## LAM_Init ([nslaves [, hosts]])
##
## The same as MPITB_Init: there is one way to begin, whatever the library.

function LAM_Init (varargin)
  MPITB_Init (varargin{:});
end
