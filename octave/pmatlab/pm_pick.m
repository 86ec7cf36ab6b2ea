## Y = pm_pick (X, subs): X(subs{:}), see subsref.
##
## A range of a divided dimension leaves the elements where they are: Y.chosen says which ones of the map's array these
## are, until pm_complete moves them.
function Y = pm_pick (X, subs)
  X = pm_complete (X);
  subs = cellfun (@agg_all, subs, "UniformOutput", false);
  dims = numel (X.shape);
  if (numel (subs) == 1)
    Y = pick_linear (X, subs{1});
    return;
  elseif (numel (subs) < dims)
    X = reshape (X, [X.shape(1:numel (subs)-1), prod(X.shape(numel (subs):end))]);
  endif
  Y = pick (X, subs);
endfunction

function Y = pick (X, subs)
  [subs, sizes] = pm_subscripts (X, subs);
  Y = X;
  local_subs = pm_local_subscripts (X, subs);
  lengths = cells (X.map);
  axes = pm_axes (X.shape, X.map);
  whole = true;
  for d = 1:numel (subs)
    if (strcmp (subs{d}, ":"))
      continue;
    endif
    if (isscalar (subs{d}))
      owner = mod (floor ((subs{d} - 1) / axes(3,d)), axes(2,d));
      Y = pm_first_cells (Y, d, owner);
      subs{d} = ":";
    elseif (lengths(d) > 1)
      whole = false;
    endif
  endfor
  if (! whole)
    Y.chosen = struct ("shape", Y.shape, "subs", {subs});
  endif
  Y.shape = sizes;
  if (inmap (Y.map, Pid ()))
    Y.part = X.part(local_subs{:});
  else
    Y.part = X.part(zeros (0, 0));
  endif
endfunction

## One subscript counts the elements of the whole array. The result has the shape that Octave gives it.
function Y = pick_linear (X, k)
  n = prod (X.shape);
  is_line = numel (X.shape) == 2 && any (X.shape == 1) && n != 1;
  if (strcmp (k, ":"))
    Y = reshape (X, [n 1]);
    return;
  endif
  if (islogical (k))
    k = find (k);
  endif
  wanted = size (k);
  if (is_line && isvector (k))
    wanted(X.shape != 1) = numel (k);
    wanted(X.shape == 1) = 1;
  endif
  if (isscalar (k) && any (k == 1:n))
    at = cell (1, numel (X.shape));
    [at{:}] = ind2sub (X.shape, k);
    Y = pick (X, at);
  elseif (is_line && X.shape(1) == 1)
    Y = pick (X, {1, k(:)});
  else
    Y = pick (reshape (X, [n 1]), {k(:), 1});
  endif
  if (! isequal (Y.shape, wanted))
    Y = reshape (Y, wanted);
  endif
endfunction
