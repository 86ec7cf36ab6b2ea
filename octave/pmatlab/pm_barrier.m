## pm_barrier (): waits until all ranks have called it.
function pm_barrier ()
  if (Np () > 1)
    __pmatlab_reduce__ (0, "+");
  endif
endfunction
