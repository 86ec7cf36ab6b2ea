## r = pm_agree (r): whether a condition holds on any rank. Collective; all ranks get it.
function r = pm_agree (r)
  if (Np () > 1)
    r = __pmatlab_reduce__ (double (r), "max") > 0;
  endif
endfunction
