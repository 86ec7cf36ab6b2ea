## Z = X / Y: by a number; or of a distributed X by an ordinary matrix, line by line.
function Z = mrdivide (X, Y)
  if (isscalar (Y))
    Z = rdivide (X, Y);
  elseif (isa (Y, "dmat"))
    Z = transpose (mldivide (transpose (Y), transpose (X)));
  else
    Z = pm_whole (X, 2, "mrdivide", @(part, d) part / Y);
  endif
endfunction
