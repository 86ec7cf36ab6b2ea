## Y = pm_reduced (Y, part): the array that pm_first_cells has prepared, with its elements. If it has one element it
## becomes a plain number on all ranks.
function Y = pm_reduced (Y, part)
  mine = inmap (Y.map, Pid ());
  if (prod (Y.shape) == 1)
    if (Np () == 1)
      Y = part;
    else
      Y = __pmatlab_bcast__ (part, Y.map.grid(1));
    endif
  elseif (mine)
    if (isempty (part))
      part = repmat (cast (0, class (part)), pm_local_size (Y.shape, Y.map, Pid ()));
    endif
    Y.part = part;
  else
    Y.part = part(zeros (0, 0));
  endif
endfunction
