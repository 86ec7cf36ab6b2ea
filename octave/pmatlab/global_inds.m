## [a1, a2, ...] = global_inds (X), a = global_inds (X, d): for each dimension, or for d, a row [rank, indices] for
## each rank of the map; shorter rows end with zeros.
function varargout = global_inds (X, d = [])
  varargout = pm_outputs (pm_table (X, @pm_stored), d);
endfunction
