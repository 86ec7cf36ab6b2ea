## Y = remap (X, m): a copy of a distributed array with another map. Collective. An ordinary array is dealt: all ranks
## have it.
function Y = remap (X, m)
  if (! isa (m, "map"))
    Y = agg_all (X);
  elseif (isa (X, "dmat"))
    Y = pm_move (X, m);
  else
    sizes = size (X);
    sizes(end+1:m.dim) = 1;
    Y = dmat (sizes, m, []);
    Y.part = pm_cut (X, Y, "remap");
  endif
endfunction
