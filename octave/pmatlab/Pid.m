## Pid: the number of this rank, from 0.
function rank = Pid ()
  global pMATLAB
  if (isempty (pMATLAB))
    pm_start ();
  endif
  rank = pMATLAB.my_rank;
endfunction
