## L = local (X): this rank's part of a distributed array. An ordinary array is returned as it is.
function L = local (X)
  L = X;
endfunction
