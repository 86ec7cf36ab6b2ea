## A = agg_all (X): the whole array on all ranks. Collective. An ordinary array is returned as it is.
function A = agg_all (X)
  A = X;
  if (isa (X, "dmat"))
    A = pm_gather (X, true);
  endif
endfunction
