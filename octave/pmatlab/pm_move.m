## Y = pm_move (X, m): the array with another map. Collective over all ranks, if the maps differ.
function Y = pm_move (X, m)
  X = pm_complete (X);
  if (eq (X.map, m))
    Y = X;
    return;
  endif
  Y = dmat (X.shape, m, []);
  if (issparse (X.part))
    Y.part = pm_move_sparse (X, m);
  else
    Y.part = __pmatlab_move__ (X.part, pm_axes (X.shape, X.map), X.map.grid(:)', pm_axes (X.shape, m), ...
                              m.grid(:)', Np ());
  endif
endfunction
