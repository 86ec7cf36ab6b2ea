## Z = X ^ n: the product of n times the square matrix X, n a positive integer. Collective.
function Z = mpower (X, n)
  if (! isa (X, "dmat") || ! isscalar (n) || n < 1 || n != fix (n) || ! issquare (X))
    error ("pMatlab:shape", "X ^ n: X is a square distributed matrix and n a positive integer; hint: X .^ y is the \
power of each element");
  endif
  Z = X;
  for k = 2:n
    Z = mtimes (Z, X);
  endfor
endfunction
