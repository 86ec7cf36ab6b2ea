## [a1, a2, ...] = global_block_ranges (X), a = global_block_ranges (X, d): for each dimension, or for d, a row
## [rank, first, last] for each rank of the map.
function varargout = global_block_ranges (X, d = [])
  varargout = pm_outputs (pm_table (X, @pm_block), d);
endfunction
