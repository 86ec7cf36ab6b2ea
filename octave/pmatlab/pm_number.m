## Y = pm_number (Y): an array of one element as a plain number, on all ranks; others as they are. Collective.
function Y = pm_number (Y)
  if (prod (Y.shape) == 1)
    Y = agg_all (Y);
  endif
endfunction
