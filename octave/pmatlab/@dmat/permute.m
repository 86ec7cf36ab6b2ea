## Y = permute (X, order): the map is permuted, too; no element is moved.
function Y = permute (X, order)
  X = pm_complete (X);
  m = X.map;
  if (! isequal (sort (order(:)'), 1:m.dim))
    error ("pMatlab:shape", "permute: %s is no order of %d dimensions", pm_text (order), m.dim);
  endif
  ranks = permute (m.grid, order);
  overlap = m.overlap;
  if (! isempty (overlap))
    overlap = overlap(order);
  endif
  m = map (cells (m)(order), m.dist_spec(order), ranks(:)', overlap);
  Y = dmat (X.shape(order), m, permute (X.part, order));
endfunction
