## Np: the number of ranks of the program.
function n = Np ()
  global pMATLAB
  if (isempty (pMATLAB))
    pm_start ();
  endif
  n = pMATLAB.comm_size;
endfunction
