## A = g_mat (X): agg_all (X), by its other name.
function A = g_mat (X)
  A = agg_all (X);
endfunction
