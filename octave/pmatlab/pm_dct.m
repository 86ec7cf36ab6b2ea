## Y = pm_dct (X, n, d): the discrete cosine transform of the second kind, with orthonormal base vectors; with "inverse"
## its inverse.
function Y = pm_dct (X, n, d, direction = "")
  order = [d, setdiff(1:ndims (X), d)];
  X = permute (X, order);
  if (! isempty (n))
    X = postpad (X, n, 0, 1);
  endif
  n = size (X, 1);
  base = cos (pi * (0:n-1)' * ((0:n-1) + 0.5) / n) * sqrt (2 / n);
  base(1,:) /= sqrt (2);
  if (strcmp (direction, "inverse"))
    base = base';
  endif
  Y = ipermute (reshape (base * X(:,:), size (X)), order);
endfunction
