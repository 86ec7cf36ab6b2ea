## sizes = pm_local_size (shape, m, rank): the size of the part that a rank stores; [0 0] without a cell.
function sizes = pm_local_size (shape, m, rank)
  sizes = [0 0];
  cell = pm_cell (m, rank);
  if (! isempty (cell))
    axes = pm_axes (shape, m);
    first = cell .* axes(3,:);
    period = axes(2,:) .* axes(3,:);
    owned = floor (shape ./ period) .* axes(3,:) + min (max (mod (shape, period) - first, 0), axes(3,:));
    stored = min (owned + axes(4,:), shape - first);
    sizes = owned;
    overlapping = axes(4,:) > 0 & owned > 0;
    sizes(overlapping) = stored(overlapping);
  endif
endfunction
