## n = pm_sum (n): the sum of a number over all ranks. Collective.
function n = pm_sum (n)
  if (Np () > 1)
    n = __pmatlab_reduce__ (double (n), "+");
  endif
endfunction
