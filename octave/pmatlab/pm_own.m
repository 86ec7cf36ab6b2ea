## own = pm_own (X, d): this rank's part without the overlap in dimension d (without d: in all dimensions).
function own = pm_own (X, d = 1:X.map.dim)
  own = X.part;
  overlap = overlaps (X.map);
  cell = pm_cell (X.map, Pid ());
  if (! any (overlap(d)) || isempty (cell))
    return;
  endif
  axes = pm_axes (X.shape, X.map);
  places = repmat ({":"}, 1, X.map.dim);
  for k = d
    places{k} = 1:numel (pm_owned (axes(:,k), cell(k)));
  endfor
  own = own(places{:});
endfunction
