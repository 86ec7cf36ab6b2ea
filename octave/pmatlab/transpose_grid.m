## Y = transpose_grid (X): the same matrix, dealt by the map with the transposed grid: rows become columns, and the
## reverse. Collective. An ordinary array is returned as it is.
function Y = transpose_grid (X)
  Y = X;
  if (isa (X, "dmat"))
    if (X.dim != 2)
      error ("pMatlab:shape", "transpose_grid: an array of %d dimensions; there is one for matrices", X.dim);
    endif
    m = X.map;
    overlap = m.overlap;
    Y = pm_move (X, map (fliplr (cells (m)), m.dist_spec, m.grid(:)', overlap));
  endif
endfunction
