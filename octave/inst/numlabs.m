## -*- texinfo -*-
## @deftypefn {} {@var{n} =} numlabs ()
## The older name of @code{spmdSize}.
## @seealso{spmdSize}
## @end deftypefn

function n = numlabs ()
  n = spmdSize ();
endfunction
