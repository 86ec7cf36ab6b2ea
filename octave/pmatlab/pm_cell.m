## cell = pm_cell (m, rank): the coordinates of a rank in the grid of a map, from 0; [] if it is not in the map.
function cell = pm_cell (m, rank)
  grid = m.grid;
  cell = find (grid(:)' == rank, 1) - 1;
  if (! isempty (cell))
    cells = size (grid);
    cells(end+1:m.dim) = 1;
    cell = mod (floor (cell ./ cumprod ([1, cells(1:end-1)])), cells);
  endif
endfunction
