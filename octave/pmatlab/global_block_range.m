## [a1, a2, ...] = global_block_range (X), a = global_block_range (X, d): for each dimension, or for d, the first and
## the last global index of the local part; empty if it has none.
function varargout = global_block_range (X, d = [])
  varargout = pm_outputs (pm_each (X, @pm_block), d);
endfunction
