## results = pm_each (X, f): for each dimension f (axis, cell) of a rank's cell, or zeros (1, 0) without one. An
## ordinary array is one cell.
function results = pm_each (X, f, rank = Pid ())
  if (isa (X, "dmat"))
    cell = pm_cell (X.map, rank);
    axes = pm_axes (X.shape, X.map);
  else
    cell = zeros (1, ndims (X));
    axes = [size(X); ones(1, ndims (X)); max(size (X), 1); zeros(1, ndims (X))];
  endif
  results = repmat ({zeros(1, 0)}, 1, columns (axes));
  for d = 1:numel (cell)
    results{d} = f (axes(:,d), cell(d));
  endfor
endfunction
