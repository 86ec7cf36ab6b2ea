## Y = pm_first_cells (X, d, cell): an array of one element along dimension d, on the first cells of the map of X along
## it (or on those with this number, from 0); its part is empty yet.
function Y = pm_first_cells (X, d, cell = 0)
  m = X.map;
  places = repmat ({":"}, 1, m.dim);
  places{d} = cell + 1;
  overlap = overlaps (m);
  overlap(d) = 0;
  specs = m.dist_spec;
  specs(d).dist = "b";
  specs(d).b_size = [];
  ranks = m.grid(places{:});
  lengths = cells (m);
  lengths(d) = 1;
  if (! any (overlap))
    overlap = [];
  endif
  shape = X.shape;
  shape(d) = 1;
  Y = dmat (shape, map (lengths, specs, ranks(:)', overlap), zeros (0, 0));
endfunction
