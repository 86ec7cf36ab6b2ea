## Shows the whole array, on rank 0. Collective.
function display (X)
  A = agg (X);
  if (Pid () == 0)
    name = inputname (1, false);
    if (isempty (name))
      name = "ans";
    endif
    eval (sprintf ("%s = A", name));
  endif
endfunction
