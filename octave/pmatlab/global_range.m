## [a1, a2, ...] = global_range (X), a = global_range (X, d): for each dimension, or for d, the segments
## [first, last, first, last ...] of global indices of the local part.
function varargout = global_range (X, d = [])
  varargout = pm_outputs (pm_each (X, @pm_segments), d);
endfunction
