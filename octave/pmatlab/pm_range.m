## [stored, owned] = pm_range (X, rank): for each dimension which elements of a range (see pm_pick), counted in the
## range, a rank stores and owns.
function [stored, owned] = pm_range (X, rank)
  axes = pm_axes (X.chosen.shape, X.map);
  cell = pm_cell (X.map, rank);
  stored = owned = repmat ({zeros(1, 0)}, 1, numel (X.shape));
  for d = 1:numel (cell)
    wanted = X.chosen.subs{d};
    if (strcmp (wanted, ":"))
      wanted = 1:X.shape(d);
    endif
    stored{d} = find (ismember (wanted, pm_stored (axes(:,d), cell(d))));
    owned{d} = find (ismember (wanted, pm_owned (axes(:,d), cell(d))));
  endfor
endfunction
