## tables = pm_table (X, f): for each dimension a matrix with a row [rank, f(axis, cell)] for each rank of the map, in
## the order of the grid; shorter rows end with zeros.
function tables = pm_table (X, f)
  ranks = 0;
  dimensions = ndims (X);
  if (isa (X, "dmat"))
    ranks = X.map.grid(:)';
  endif
  tables = repmat ({zeros(numel (ranks), 1)}, 1, dimensions);
  for k = 1:numel (ranks)
    results = pm_each (X, f, ranks(k));
    for d = 1:dimensions
      tables{d}(k,1:1+numel (results{d})) = [ranks(k), results{d}];
    endfor
  endfor
endfunction
