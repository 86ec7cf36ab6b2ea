## indices = pm_owned (axis, cell): the indices, from 1, that a cell owns along an axis (a column of pm_axes). Each
## index has one owner.
function indices = pm_owned (axis, cell)
  [len, cells, block] = deal (axis(1), axis(2), axis(3));
  if (block == 1)
    indices = cell+1:cells:len;
  elseif (cells * block >= len)
    indices = cell*block+1:min ((cell + 1) * block, len);
  else
    indices = (1:block)' + (cell*block:cells*block:len-1);
    indices = indices(:)';
    indices = indices(indices <= len);
  endif
endfunction
