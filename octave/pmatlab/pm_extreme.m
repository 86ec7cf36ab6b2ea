## [Y, places] = pm_extreme (X, d, f, better): the largest or smallest element of each line, and its (first) index.
function [Y, places] = pm_extreme (X, d, f, better)
  X = pm_complete (X);
  d = pm_dimension (X, d);
  Y = pm_first_cells (X, d);
  best = {};
  own = pm_own (X, d);
  if (! isempty (own))
    [value, at] = f (own, [], d);
    indices = pm_inds (X){d};
    best = {value, reshape(indices(at), size (at))};
  endif
  for other = pm_collect (X, d, best)
    if (! isempty (other{1}))
      [value, at] = other{1}{:};
      take = better (value, best{1}) | (isnan (best{1}) & ! isnan (value)) | (value == best{1} & at < best{2});
      best{1}(take) = value(take);
      best{2}(take) = at(take);
    endif
  endfor
  best(end+1:2) = {own(zeros (0, 0)), []}(numel (best)+1:2);
  places = pm_reduced (Y, best{2});
  Y = pm_reduced (Y, best{1});
endfunction
