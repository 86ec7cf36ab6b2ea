## Y = X.': the result has the map of X, so elements are moved. Collective.
function Y = transpose (X)
  X = pm_complete (X);
  if (numel (X.shape) != 2)
    error ("pMatlab:shape", "transpose: an array of 2 dimensions has a transpose; this one has %d", numel (X.shape));
  endif
  Y = pm_move (dmat (fliplr (X.shape), transpose (X.map), X.part.'), X.map);
endfunction
