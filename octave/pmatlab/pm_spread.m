## Y = pm_spread (line, X, d): an array with the size and map of X that repeats, along dimension d, what a reduction of
## X along it has made (see pm_along). Collective over the ranks of the map.
function Y = pm_spread (line, X, d)
  Y = X;
  if (isa (line, "dmat"))
    place = pm_cell (X.map, Pid ());
    if (isempty (place))
      return;
    endif
    ranks = num2cell (place + 1);
    ranks{d} = ":";
    ranks = X.map.grid(ranks{:})(:)';
    line = multicast (ranks(1), ranks(2:end), line.part);
  endif
  Y.part = zeros (size (X.part)) + line;
endfunction
