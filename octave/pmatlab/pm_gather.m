## A = pm_gather (X, everywhere): the whole array on rank 0, or on all ranks; [] elsewhere.
function A = pm_gather (X, everywhere)
  X = pm_complete (X);
  if (! issparse (X.part))
    A = __pmatlab_gather__ (X.part, pm_axes (X.shape, X.map), X.map.grid(:)', Np (), everywhere);
    return;
  endif
  A = pm_move (X, map ([1 1], {}, 0)).part;
  if (everywhere && Np () > 1)
    A = __pmatlab_bcast__ (A, 0);
  endif
endfunction
