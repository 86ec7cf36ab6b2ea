## own = pm_own (X, d): this rank's part without the overlap in dimension d (without d: in all dimensions).
function own = pm_own (X, d = 1:X.map.dim)
  if (! isempty (X.chosen))
    [stored, owned] = pm_range (X, Pid ());
    places = cell (1, numel (stored));
    for k = 1:numel (stored)
      [~, places{k}] = ismember (owned{k}, stored{k});
    endfor
    own = X.part(places{:});
    return;
  endif
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
