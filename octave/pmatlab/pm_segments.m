## segments = pm_segments (axis, cell): [first, last, first, last ...] of what a cell stores along an axis.
function segments = pm_segments (axis, cell)
  indices = pm_stored (axis, cell);
  segments = zeros (1, 0);
  if (! isempty (indices))
    ends = find ([diff(indices) != 1, true]);
    firsts = [1, ends(1:end-1) + 1];
    segments = [indices(firsts); indices(ends)](:)';
  endif
endfunction
