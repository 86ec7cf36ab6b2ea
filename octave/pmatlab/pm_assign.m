## X = pm_assign (X, subs, value): X(subs{:}) = value, see subsasgn.
function X = pm_assign (X, subs, value)
  X = pm_complete (X);
  if (! (isnumeric (value) || islogical (value) || ischar (value)))
    error ("pMatlab:class", "a value of class %s cannot be assigned to a distributed array", class (value));
  elseif (isequal (size (value), [0 0]) && all (X.shape > 0))
    error ("pMatlab:index", "X(...) = [] would delete elements of a distributed array; hint: Y = X(...) with the other \
ones");
  endif
  if (numel (subs) == 1 && isa (subs{1}, "dmat") && islogical (subs{1}) && isequal (subs{1}.shape, X.shape)
      && isscalar (value))
    X.part = promoted (X.part, value);
    X.part(pm_move (subs{1}, X.map).part) = agg_all (value);
    return;
  endif
  subs = cellfun (@agg_all, subs, "UniformOutput", false);
  if (numel (subs) == 1 && strcmp (subs{1}, ":"))
    if (! isscalar (value) && numel (value) == prod (X.shape))
      value = reshape (value, X.shape);
    endif
    subs = repmat (subs, 1, numel (X.shape));
  elseif (numel (subs) < numel (X.shape))
    [subs, is_box] = box (X, subs);
    if (! is_box)
      whole = agg_all (X);
      whole(subs{:}) = agg_all (value);
      if (! isequal ([size(whole), ones(1, numel (X.shape) - ndims (whole))], X.shape))
        error ("pMatlab:index", "a subscript is outside of the distributed array, which is %s", pm_text (X.shape));
      endif
      X = remap (whole, X.map);
      return;
    endif
  endif
  [subs, sizes] = pm_subscripts (X, subs);
  if (all (cellfun (@(k) strcmp (k, ":"), subs)))
    X = assign_all (X, value);
    return;
  endif
  X.part = promoted (X.part, value);
  places = pm_local_subscripts (X, subs);
  if (isa (value, "dmat") && prod (value.shape) == 1 && prod (sizes) != 1)
    value = agg_all (value);
  endif
  if (isa (value, "dmat"))
    value = in_range (value, X, subs, sizes);
    if (inmap (X.map, Pid ()))
      X.part(places{:}) = value;
    endif
    return;
  endif
  [~, which] = pm_local_subscripts (X, subs);
  here = cellfun (@numel, which);
  if (isscalar (value))
    if (all (here))
      X.part(places{:}) = value;
    endif
  elseif (all (here))
    if (isequal (size (value)(size (value) != 1), sizes(sizes != 1)))
      value = reshape (value, sizes);
      X.part(places{:}) = value(which{:});
    elseif (isequal (size (value)(size (value) != 1), here(here != 1)))
      X.part(places{:}) = value;
    else
      error ("pMatlab:shape", "the right-hand side is %s; the range is %s, of which this rank has %s", ...
             pm_text (size (value)), pm_text (sizes), pm_text (here));
    endif
  endif
endfunction

## What this rank needs of a distributed right-hand side, for the elements of X(subs{:}) that it stores. It comes from
## the ranks that have it; where all ranks have what they need, nothing is sent.
function part = in_range (value, X, subs, sizes)
  if (! isequal (value.shape(value.shape != 1), sizes(sizes != 1)))
    error ("pMatlab:shape", "the right-hand side is %s; the range is %s", pm_text (value.shape), pm_text (sizes));
  endif
  if (! isequal (value.shape, sizes))
    value = reshape (value, sizes);
  endif
  part = pm_route (pm_own (value), @(rank) pm_inds_owned (value, rank), @(rank) needed (X, subs, rank));
endfunction

function lists = needed (X, subs, rank)
  lists = pm_inds (X, rank);
  for d = 1:numel (subs)
    if (! strcmp (subs{d}, ":"))
      lists{d} = find (ismember (subs{d}(:)', lists{d}));
    endif
  endfor
endfunction

## Fewer subscripts than dimensions, as one for each dimension, if they select a box.
function [subs, is_box] = box (X, subs)
  is_box = numel (subs) == 1;
  if (! is_box)
    return;
  endif
  k = subs{1};
  if (islogical (k))
    k = find (k);
  endif
  longer = find (X.shape != 1);
  is_box = isscalar (k) && any (k == 1:prod (X.shape));
  if (is_box)
    subs = cell (1, numel (X.shape));
    [subs{:}] = ind2sub (X.shape, k);
  elseif (numel (longer) == 1)
    is_box = true;
    subs = repmat ({1}, 1, numel (X.shape));
    subs{longer} = k;
  endif
endfunction

## A part with the class that an assignment gives it, on all ranks.
function part = promoted (part, value)
  if (isa (value, "dmat"))
    value = value.part;
  endif
  element = cast (0, class (part));
  element(1) = cast (0, class (value));
  if (! strcmp (class (element), class (part)))
    part = cast (part, class (element));
  endif
endfunction

## The whole array.
function X = assign_all (X, value)
  if (isa (value, "dmat") && prod (value.shape) == 1)
    value = agg_all (value);
  endif
  if (isa (value, "dmat"))
    if (! isequal (value.shape, X.shape))
      error ("pMatlab:shape", "the right-hand side is %s, the left-hand side %s", pm_text (value.shape), ...
             pm_text (X.shape));
    endif
    part = pm_move (value, X.map).part;
  elseif (isscalar (value))
    part = repmat (value, size (X.part));
  else
    sizes = [size(value), ones(1, numel (X.shape) - ndims (value))];
    if (! isequal (sizes, X.shape))
      error ("pMatlab:shape", "the right-hand side is %s, the left-hand side %s", pm_text (size (value)), ...
             pm_text (X.shape));
    endif
    part = pm_cut (value, X, "assignment");
  endif
  ## Integers stay what they are, as in an assignment to a part of an ordinary array.
  if (isinteger (X.part) && ! isinteger (part))
    part = cast (part, class (X.part));
  endif
  X.part = part;
endfunction
