## Shows the whole array, on rank 0. Collective.
function disp (X)
  A = agg (X);
  if (Pid () == 0)
    disp (A);
  endif
endfunction
