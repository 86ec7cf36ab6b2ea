## [a1, a2, ...] = global_ranges (X), a = global_ranges (X, d): for each dimension, or for d, a row [rank, segments]
## for each rank of the map (see global_range); shorter rows end with zeros.
function varargout = global_ranges (X, d = [])
  varargout = pm_outputs (pm_table (X, @pm_segments), d);
endfunction
