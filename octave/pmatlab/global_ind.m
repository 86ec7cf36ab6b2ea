## [a1, a2, ...] = global_ind (X), a = global_ind (X, d): for each dimension, or for d, the global indices of the
## local part. Of an ordinary array: 1:size.
function varargout = global_ind (X, d = [])
  varargout = pm_outputs (pm_each (X, @pm_stored), d);
endfunction
