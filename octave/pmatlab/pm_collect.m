## others = pm_collect (X, d, value): sends a value of each rank to the first cell of its line along dimension d, which
## gets them as the columns of a cell array, in order.
function others = pm_collect (X, d, value)
  others = cell (1, 0);
  place = pm_cell (X.map, Pid ());
  lengths = cells (X.map);
  if (isempty (place) || lengths(d) == 1)
    return;
  endif
  line = num2cell (place + 1);
  line{d} = ":";
  line = X.map.grid(line{:})(:)';
  if (place(d) == 0)
    others = __pmatlab_swap__ ({}, [], line(2:end));
  else
    __pmatlab_swap__ ({value}, line(1), []);
  endif
endfunction
