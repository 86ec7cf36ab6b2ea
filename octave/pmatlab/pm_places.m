## places = pm_places (steps, indices): the sum of (index - 1) * step over the dimensions; the indices are vectors along
## their dimensions.
function places = pm_places (steps, indices)
  places = 0;
  for d = 1:numel (steps)
    places = places + (indices{d} - 1) * steps(d);
  endfor
endfunction
