## X = put_local (X, L): a distributed array with another local part. Of an ordinary array: L.
function X = put_local (X, L)
  X = L;
endfunction
