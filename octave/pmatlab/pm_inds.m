## places = pm_inds (X, rank): for each dimension the global indices of the part that a rank (without it: this one)
## stores, in the order of that part.
function places = pm_inds (X, rank = Pid ())
  cell = pm_cell (X.map, rank);
  axes = pm_axes (X.shape, X.map);
  places = repmat ({zeros(1, 0)}, 1, columns (axes));
  for d = 1:numel (cell)
    places{d} = pm_stored (axes(:,d), cell(d));
  endfor
endfunction
