## X(...) = B, X.local = L, X.local(...) = V.
##
## X(:,:) = B and X(:) = B: B is a number, an ordinary array of the size of X (each rank takes its own indices), or a
## distributed one. If that has another map, all ranks exchange elements: the assignment is collective.
## X(i,j) = D: each rank stores the elements that it has. D is a number, or has the size of the range, or that of the
## elements of the range that the rank stores.
## X(i,j) = B with a distributed B of the size of the range: elements go from the ranks that have them to those that
## store them in X. All ranks call it, unless each has already what it stores, as in X(i,:) = Y(i,:) with one map.
## X(mask) = D: mask is a distributed array of logical values with the size of X. X(k) = D with one list of indices, or
## an array D, collects the array.
## The array does not grow or shrink.
function X = subsasgn (X, s, value)
  if (strcmp (s(1).type, "."))
    if (! any (strcmp (s(1).subs, {"local", "part"})))
      X = builtin ("subsasgn", X, s, value);
      return;
    endif
    if (numel (s) > 1)
      value = subsasgn (X.part, s(2:end), value);
    endif
    X.part = value;
  elseif (strcmp (s(1).type, "()") && numel (s) == 1)
    X = pm_assign (X, s(1).subs, value);
  else
    error ("pMatlab:index", "this assignment to a distributed array is not possible; hint: X(i,j) = ... or \
X.local(i,j) = ...");
  endif
endfunction
