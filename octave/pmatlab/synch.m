## X = synch (X): fills the overlaps: in each dimension with an overlap the first slices of a cell overwrite the copies
## that the cell before it stores. Collective over the ranks of the map. Without overlap X is returned as it is.
function X = synch (X)
  if (isa (X, "dmat"))
    X = pm_complete (X);
  endif
  if (! isa (X, "dmat") || ! any (overlaps (X.map)) || ! inmap (X.map, Pid ()))
    return;
  endif
  [dests, outgoing] = pm_neighbours (X, @pm_owned, @pm_stored);
  [sources, incoming] = pm_neighbours (X, @pm_stored, @pm_owned);
  values = __pmatlab_swap__ (cellfun (@(at) X.part(at{:}), outgoing, "UniformOutput", false), dests, sources);
  for k = 1:numel (sources)
    X.part(incoming{k}{:}) = values{k};
  endfor
endfunction
