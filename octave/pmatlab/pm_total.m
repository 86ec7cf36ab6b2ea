## n = pm_total (f, X): f (f (X, 1), 2), a plain number on all ranks.
function n = pm_total (f, X)
  n = f (f (X, 1), 2);
endfunction
