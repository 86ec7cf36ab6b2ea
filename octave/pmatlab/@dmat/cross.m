## Z = cross (X, Y, d): of vectors along dimension d, which has 3 elements.
function Z = cross (X, Y, d = [])
  if (isempty (d))
    d = find (size (X) == 3, 1);
  endif
  if (isempty (d) || size (X, d) != 3 || ! isequal (size (X), size (Y)))
    error ("pMatlab:shape", "cross: the sizes %s and %s must be equal, with a dimension of 3", pm_text (size (X)), ...
           pm_text (size (Y)));
  endif
  if (! isa (X, "dmat"))
    X = remap (X, Y.map);
  elseif (! isa (Y, "dmat"))
    Y = remap (Y, X.map);
  endif
  take = @(X, k) pm_whole (X, d, "cross", @(part, d) circshift (part, -k, d));
  Z = minus (times (take (X, 1), take (Y, 2)), times (take (X, 2), take (Y, 1)));
endfunction

