## part = pm_route (values, from, to): moves elements between ranks. from (rank) and to (rank) list, for each dimension,
## the indices that a rank has, each in one rank, and those that it needs; `values` are those that this rank has.
## Collective over the ranks that have elements of the array or need some.
function part = pm_route (values, from, to)
  me = Pid ();
  mine = from (me);
  needed = to (me);
  part = repmat (cast (0, class (values)), max (cellfun (@numel, needed), 0));
  if (issparse (values))
    part = sparse (part);
  endif
  dests = sources = [];
  parcels = places = {};
  for rank = 0:Np () - 1
    [at, out] = meet (mine, to (rank));
    if (out && rank == me)
      part(meet (needed, mine){:}) = values(at{:});
    elseif (out)
      dests(end+1) = rank;
      parcels{end+1} = values(at{:});
    endif
    [at, in] = meet (needed, from (rank));
    if (in && rank != me)
      sources(end+1) = rank;
      places{end+1} = at;
    endif
  endfor
  if (isempty (dests) && isempty (sources))
    return;
  endif
  parcels = __pmatlab_swap__ (parcels, dests, sources);
  for k = 1:numel (sources)
    part(places{k}{:}) = parcels{k};
  endfor
endfunction

## Where the indices that two lists have in common lie in the first one, by increasing index; whether there are any.
function [places, any_at_all] = meet (list, other)
  places = cell (1, numel (list));
  for d = 1:numel (list)
    [~, places{d}] = intersect (list{d}, other{d});
  endfor
  any_at_all = ! any (cellfun (@isempty, places));
endfunction
