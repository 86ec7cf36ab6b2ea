## A source or tag for limosa_recv and the like: -1 stands for any.
function value = mpi_any (value)
  if (isequal (value, -1))
    value = [];
  endif
endfunction
