## Returns the rank of the worker with this index, which counts from 1.
function rank = __limosa_index__ (index, call)
  if (! (isnumeric (index) && isscalar (index) && index == fix (index) && index >= 1 && index <= limosa_size ()))
    error ("limosa:rank", "%s: the index of a worker must be an integer from 1 to %d", call, limosa_size ());
  endif
  rank = double (index) - 1;
endfunction
