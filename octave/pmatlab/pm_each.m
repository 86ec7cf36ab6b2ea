## results = pm_each (X, f): for each dimension f (axis, cell) of a rank's cell, or zeros (1, 0) without one. An
## ordinary array is one cell. Ranges (see pm_pick) have lists of indices only.
function results = pm_each (X, f, rank = Pid ())
  if (isa (X, "dmat") && ! isempty (X.chosen))
    [stored, owned] = pm_range (X, rank);
    switch (func2str (f))
      case "pm_stored"
        results = stored;
      case "pm_owned"
        results = owned;
      otherwise
        error ("pMatlab:index", "a range of a divided dimension has no blocks; hint: global_ind (X), or remap it");
    endswitch
    return;
  endif
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
