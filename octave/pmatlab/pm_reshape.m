## Y = pm_reshape (X, sizes, m): the elements in the same order as an array with other sizes and a map for them.
## Collective over all ranks.
function Y = pm_reshape (X, sizes, m)
  X = pm_complete (X);
  ranks = 0:Np () - 1;
  places = linear (pm_inds_owned (X), X.shape);
  values = full (pm_own (X)(:));
  Y = dmat (sizes, m, []);
  axes = pm_axes (sizes, m);
  parcels = cell (1, Np ());
  subs = cell (1, numel (sizes));
  [subs{:}] = ind2sub (sizes, places);
  for rank = ranks
    there = pm_cell (m, rank);
    shape = [pm_local_size(sizes, m, rank), 1];
    wanted = repmat (! isempty (there), size (places));
    at = ones (size (places));
    for d = 1:numel (there)
      k = lookup (pm_stored (axes(:,d), there(d)), subs{d}, "m");
      wanted &= k > 0;
      at += (k - 1) * prod (shape(1:d-1));
    endfor
    parcels{rank+1} = {at(wanted), values(wanted)};
  endfor
  if (Np () > 1)
    parcels = __pmatlab_swap__ (parcels, ranks, ranks);
  endif
  Y.part = repmat (cast (0, class (values)), pm_local_size (sizes, m, Pid ()));
  for parcel = parcels
    if (! isempty (parcel{1}{1}))
      Y.part(parcel{1}{1}) = parcel{1}{2};
    endif
  endfor
  if (issparse (X.part))
    Y.part = sparse (Y.part);
  endif
endfunction

## The linear indices of the elements of a box, as a column.
function places = linear (lists, sizes)
  places = 1;
  for d = 1:numel (lists)
    places = places(:) + (lists{d} - 1) * prod (sizes(1:d-1));
  endfor
  places = places(:);
endfunction
