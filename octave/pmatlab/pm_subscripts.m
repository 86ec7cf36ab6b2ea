## [subs, sizes] = pm_subscripts (X, subs): checks subscripts of a distributed array. Those of a whole dimension become
## ':', masks become indices; `sizes` is the size of what they select.
function [subs, sizes] = pm_subscripts (X, subs)
  if (numel (subs) != numel (X.shape))
    error ("pMatlab:index", "%d subscripts for a distributed array of %d dimensions (%s)", numel (subs), ...
           numel (X.shape), pm_text (X.shape));
  endif
  sizes = X.shape;
  for d = 1:numel (subs)
    k = subs{d};
    if (strcmp (k, ":"))
      continue;
    endif
    if (islogical (k))
      k = find (k);
    endif
    wrong = k(k < 1 | k > X.shape(d) | k != fix (k));
    if (! isnumeric (k) || ! isempty (wrong))
      error ("pMatlab:index", "subscript %d is %s; the distributed array is %s", d, ...
             pm_text ([wrong(:)', k(:)'](1)), pm_text (X.shape));
    endif
    sizes(d) = numel (k);
    if (numel (k) == X.shape(d) && numel (k) != 1 && isequal (k(:)', 1:X.shape(d)))
      k = ":";
    endif
    subs{d} = k;
  endfor
endfunction
