## A = agg (X): the whole array on rank 0; the others get their own part. Collective. With several hosts the parts are
## collected on each host first. An ordinary array is returned as it is.
function A = agg (X)
  A = X;
  if (isa (X, "dmat"))
    A = pm_gather (X, false);
    if (Pid () != 0)
      A = X.part;
    endif
  endif
endfunction
