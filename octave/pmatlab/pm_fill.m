## X = pm_fill (f, args): a distributed array whose local parts are made by f (sizes), f (sizes, class).
function X = pm_fill (f, args)
  [shape, m, cls] = pm_shape (args);
  X = dmat (shape, m, []);
  X.part = f (pm_local_size (X.shape, m, Pid ()), cls{:});
endfunction
