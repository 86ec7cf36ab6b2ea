## places = pm_inds_owned (X, rank): as pm_inds, of the part without its overlap.
function places = pm_inds_owned (X, rank = Pid ())
  places = pm_each (X, @pm_owned, rank);
endfunction
