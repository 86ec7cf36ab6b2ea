## pm_unsupported (name): the error of a function that does not take distributed arrays.
function pm_unsupported (name)
  error ("pMatlab:unsupported", "%s: a distributed array cannot be an argument; hint: %s (agg (X)) on rank 0, %s \
(agg_all (X)) on all ranks, or %s (local (X)) of each rank's part", name, name, name, name);
endfunction
