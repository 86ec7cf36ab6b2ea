## X = pm_assign (X, subs, value): X(subs{:}) = value, see subsasgn.
function X = pm_assign (X, subs, value)
  if (numel (subs) == 1 && isa (subs{1}, "dmat"))
    mask = subs{1};
    if (! isequal (mask.shape, X.shape) || ! eq (mask.map, X.map) || ! isscalar (value))
      error ("pMatlab:index", "X(mask) = v: the mask has the size and the map of X, and v is a number");
    endif
    X.part(logical (mask.part)) = value;
    return;
  endif
  if (numel (subs) == 1 && strcmp (subs{1}, ":"))
    subs = repmat (subs, 1, numel (X.shape));
  endif
  [subs, sizes] = pm_subscripts (X, subs);
  if (all (cellfun (@(k) strcmp (k, ":"), subs)))
    X = assign_all (X, value);
    return;
  endif
  [places, which] = pm_local_subscripts (X, subs);
  here = cellfun (@numel, which);
  if (isa (value, "dmat"))
    if (! isequal (size (value.part), size (X.part(places{:}))))
      error ("pMatlab:shape", "the local part of the right-hand side is %s, that of the range on the left %s; hint: an \
assignment to a range does not move elements, X(:,:) = B does", pm_text (size (value.part)), pm_text (here));
    endif
    X.part(places{:}) = value.part;
  elseif (isscalar (value))
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

## The whole array.
function X = assign_all (X, value)
  if (isa (value, "dmat"))
    if (! isequal (value.shape, X.shape))
      error ("pMatlab:shape", "the right-hand side is %s, the left-hand side %s", pm_text (value.shape), ...
             pm_text (X.shape));
    endif
    part = pm_move (value, X.map).part;
  elseif (! (isnumeric (value) || islogical (value)))
    error ("pMatlab:class", "a value of class %s cannot be assigned to a distributed array", class (value));
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
