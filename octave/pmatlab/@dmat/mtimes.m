## Z = X * Y: the result has the map of the first operand that is distributed. Collective, but for numbers.
##
## Each rank multiplies its rows of X with all of Y (or, if only Y is distributed, X with its columns of Y).
function Z = mtimes (X, Y)
  if (isscalar (X) || isscalar (Y))
    Z = times (X, Y);
    return;
  endif
  if (isa (X, "dmat"))
    X = pm_complete (X);
  else
    Y = pm_complete (Y);
  endif
  if (ndims (X) != 2 || ndims (Y) != 2 || size (X, 2) != size (Y, 1))
    error ("pMatlab:shape", "X * Y: the sizes %s and %s do not fit", pm_text (size (X)), pm_text (size (Y)));
  endif
  if (isa (X, "dmat"))
    m = X.map;
    X = pm_move (X, pm_lines (m, 1));
    Y = agg_all (Y);
    Z = dmat ([X.shape(1), columns(Y)], X.map, multiply (X.part, Y, X.part, columns (Y)));
  else
    m = Y.map;
    Y = pm_move (Y, pm_lines (m, 2));
    Z = dmat ([rows(X), Y.shape(2)], Y.map, multiply (X, Y.part, Y.part, rows (X)));
  endif
  Z = pm_move (Z, m);
endfunction

## A rank without a part has nothing to multiply.
function part = multiply (A, B, part, others)
  if (! isequal (size (part), [0 0]) || others == 0)
    part = A * B;
  endif
endfunction
