## -*- texinfo -*-
## @deftypefn {} {} labBarrier ()
## The older name of @code{spmdBarrier}.
## @seealso{spmdBarrier}
## @end deftypefn

function labBarrier ()
  spmdBarrier ();
endfunction
