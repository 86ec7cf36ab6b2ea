## Y = pm_pick (X, subs): X(subs{:}), see subsref.
function Y = pm_pick (X, subs)
  [subs, sizes] = pm_subscripts (X, subs);
  Y = X;
  local_subs = pm_local_subscripts (X, subs);
  lengths = cells (X.map);
  axes = pm_axes (X.shape, X.map);
  for d = 1:numel (subs)
    if (strcmp (subs{d}, ":"))
      continue;
    endif
    if (isscalar (subs{d}))
      owner = mod (floor ((subs{d} - 1) / axes(3,d)), axes(2,d));
      Y = pm_first_cells (Y, d, owner);
    elseif (lengths(d) > 1)
      warning ("pMatlab:incomplete", "dimension %d is divided: the result has local parts only; hint: agg it, or remap \
it so that the dimension is whole", d);
    endif
  endfor
  Y.shape = sizes;
  if (inmap (Y.map, Pid ()))
    Y.part = X.part(local_subs{:});
  else
    Y.part = zeros (0, 0);
  endif
endfunction
