## X = pm_new (shape, m): a distributed array of zeros.
function X = pm_new (shape, m)
  X = dmat (shape, m, []);
  X.part = zeros (pm_local_size (X.shape, m, Pid ()));
endfunction
