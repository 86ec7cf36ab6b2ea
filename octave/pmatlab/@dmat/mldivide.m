## Z = X \ Y: by a number; or of a distributed Y by a matrix, column by column. A distributed X is collected on all
## ranks.
function Z = mldivide (X, Y)
  if (isscalar (X))
    Z = ldivide (X, Y);
    return;
  endif
  X = agg_all (X);
  if (isa (Y, "dmat"))
    Z = pm_whole (Y, 1, "mldivide", @(part, d) X \ part);
  else
    Z = X \ Y;
  endif
endfunction
