## n = norm (X, p): of a vector with p = 2, 1, Inf, -Inf or any number; of a matrix with p = 1, Inf, "fro" or 2 (for
## this one all ranks have the whole matrix for a moment). Collective; all ranks get it.
function n = norm (X, p = 2)
  if (strcmp (p, "inf"))
    p = Inf;
  endif
  if (numel (X.shape) != 2)
    error ("pMatlab:shape", "norm: an array of %d dimensions has none", numel (X.shape));
  endif
  if (strcmp (p, "fro") || (isvector (X) && isequal (p, 2)))
    n = sqrt (pm_total (@sum, times (abs (X), abs (X))));
  elseif (isvector (X) && isnumeric (p))
    if (p == Inf)
      n = pm_total (@(Y, d) max (Y, [], d), abs (X));
    elseif (p == -Inf)
      n = pm_total (@(Y, d) min (Y, [], d), abs (X));
    else
      n = pm_total (@sum, power (abs (X), p)) ^ (1 / p);
    endif
  elseif (isequal (p, 1))
    n = pm_total (@(Y, d) max (Y, [], d), sum (abs (X), 1));
  elseif (isequal (p, Inf))
    n = pm_total (@(Y, d) max (Y, [], d), sum (abs (X), 2));
  else
    n = norm (agg_all (X), p);
  endif
endfunction
