## [ranks, places] = pm_neighbours (X, mine, theirs): the other ranks of the map with which this one shares elements,
## and where these lie in its part: in each dimension the indices that are in mine (axis, cell) of this rank and in
## theirs (axis, cell) of the neighbour.
function [ranks, places] = pm_neighbours (X, mine, theirs)
  stored = pm_each (X, @pm_stored);
  own = pm_each (X, mine);
  ranks = [];
  places = {};
  for rank = setdiff (X.map.grid(:)', Pid ())
    others = pm_each (X, theirs, rank);
    at = cell (1, numel (own));
    for d = 1:numel (own)
      at{d} = lookup (stored{d}, intersect (own{d}, others{d}));
    endfor
    if (! any (cellfun (@isempty, at)))
      ranks(end+1) = rank;
      places{end+1} = at;
    endif
  endfor
endfunction
