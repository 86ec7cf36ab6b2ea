## Y = X': the conjugate of X.'. Collective.
function Y = ctranspose (X)
  Y = transpose (conj (X));
endfunction
