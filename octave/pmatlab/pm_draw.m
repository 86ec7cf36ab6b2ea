## X = pm_draw (f, args): a distributed array of random numbers. Every rank draws for all cells in order and keeps its
## own, so that the generators of all ranks remain in step.
function X = pm_draw (f, args)
  [shape, m, cls] = pm_shape (args);
  if (! isempty (cls))
    error ("pMatlab:arguments", "distributed random numbers have no class argument; hint: single (rand (...))");
  endif
  X = dmat (shape, m, []);
  X.part = zeros (0, 0);
  for rank = m.grid(:)'
    drawn = f (pm_local_size (X.shape, m, rank));
    if (rank == Pid ())
      X.part = drawn;
    endif
  endfor
endfunction
