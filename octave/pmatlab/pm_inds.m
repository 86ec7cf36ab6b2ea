## places = pm_inds (X, rank): for each dimension the global indices of the part that a rank (without it: this one)
## stores, in the order of that part.
function places = pm_inds (X, rank = Pid ())
  places = pm_each (X, @pm_stored, rank);
endfunction
