## X = synch2 (X): adds the copies of each element that several cells store, because of an overlap; all of them get the
## sum. Collective over the ranks of the map. Without overlap X is returned as it is.
function X = synch2 (X)
  if (isa (X, "dmat"))
    X = pm_complete (X);
  endif
  if (! isa (X, "dmat") || ! any (overlaps (X.map)) || ! inmap (X.map, Pid ()))
    return;
  endif
  [ranks, places] = pm_neighbours (X, @pm_stored, @pm_stored);
  values = __pmatlab_swap__ (cellfun (@(at) X.part(at{:}), places, "UniformOutput", false), ranks, ranks);
  for k = 1:numel (ranks)
    X.part(places{k}{:}) += values{k};
  endfor
endfunction
