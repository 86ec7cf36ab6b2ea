## part = pm_move_sparse (X, m): what this rank has of a sparse array after it is moved to another map.
function part = pm_move_sparse (X, m)
  places = pm_inds (X);
  own = pm_own (X);
  [i, j, v] = find (own);
  i = places{1}(i)(:);
  j = places{2}(j)(:);
  ranks = 0:Np () - 1;
  parcels = cell (1, Np ());
  axes = pm_axes (X.shape, m);
  for rank = ranks
    there = pm_cell (m, rank);
    if (isempty (there))
      parcels{rank+1} = {[], [], []};
      continue;
    endif
    row = lookup (pm_stored (axes(:,1), there(1)), i, "m");
    column = lookup (pm_stored (axes(:,2), there(2)), j, "m");
    wanted = row > 0 & column > 0;
    parcels{rank+1} = {row(wanted), column(wanted), v(wanted)};
  endfor
  if (Np () > 1)
    parcels = __pmatlab_swap__ (parcels, ranks, ranks);
  endif
  sizes = pm_local_size (X.shape, m, Pid ());
  column = @(k) cell2mat (cellfun (@(parcel) parcel{k}(:), parcels(:), "UniformOutput", false));
  part = sparse (column (1), column (2), column (3), sizes(1), sizes(2));
endfunction
