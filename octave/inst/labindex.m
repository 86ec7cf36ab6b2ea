## -*- texinfo -*-
## @deftypefn {} {@var{index} =} labindex ()
## The older name of @code{spmdIndex}.
## @seealso{spmdIndex}
## @end deftypefn

function index = labindex ()
  index = spmdIndex ();
endfunction
