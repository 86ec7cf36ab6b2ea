## [i, j] = find (X), [i, j, v] = find (X): the non-zero elements of a matrix, on all ranks of its map; the others get
## []. They are in the order of the cells, and within a cell in that of its part. k = find (X): their linear indices.
## Collective over the ranks of the map.
function [i, j, v] = find (X)
  if (numel (X.shape) != 2)
    error ("pMatlab:shape", "find: an array of %d dimensions; there is one for matrices", numel (X.shape));
  endif
  i = j = v = [];
  if (! inmap (X.map, Pid ()))
    return;
  endif
  places = pm_inds (X);
  [i, j, v] = find (pm_own (X));
  found = {places{1}(i)(:), places{2}(j)(:), v(:)};
  ranks = X.map.grid(:)';
  if (numel (ranks) > 1)
    found = __pmatlab_swap__ (repmat ({found}, 1, numel (ranks)), ranks, ranks);
    found = vertcat (found{:});
    found = {vertcat(found{:,1}), vertcat(found{:,2}), vertcat(found{:,3})};
  endif
  [i, j, v] = found{:};
  if (nargout < 2)
    i = i + (j - 1) * X.shape(1);
  endif
endfunction
