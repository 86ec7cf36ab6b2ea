## Y = pm_complete (X): the array with its elements where its map puts them. Only what pm_pick made of a range of a
## divided dimension has them elsewhere, namely where they were: this one is moved. Collective over all ranks then.
function Y = pm_complete (X)
  Y = X;
  if (! isempty (X.chosen))
    Y.chosen = [];
    Y.part = pm_route (pm_own (X), @(rank) pm_inds_owned (X, rank), @(rank) pm_inds (Y, rank));
  endif
endfunction
