## ends = pm_block (axis, cell): [first, last] of what a cell stores along an axis; empty if it has nothing.
function ends = pm_block (axis, cell)
  indices = pm_stored (axis, cell);
  ends = zeros (1, 0);
  if (! isempty (indices))
    ends = [indices(1), indices(end)];
  endif
endfunction
