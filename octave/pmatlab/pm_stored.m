## indices = pm_stored (axis, cell): the indices, from 1, that a cell stores along an axis (a column of pm_axes).
function indices = pm_stored (axis, cell)
  indices = pm_owned (axis, cell);
  if (axis(4) > 0 && ! isempty (indices))
    indices = indices(1):min (indices(end) + axis(4), axis(1));
  endif
endfunction
