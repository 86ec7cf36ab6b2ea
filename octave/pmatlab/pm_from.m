## X = pm_from (shape, m, f): a distributed array whose elements are f (i, j, ...) of their global indices, which come
## as vectors along their dimensions.
function X = pm_from (shape, m, f)
  X = dmat (shape, m, []);
  places = pm_inds (X);
  for d = 1:numel (places)
    sizes = ones (1, max (numel (places), 2));
    sizes(d) = numel (places{d});
    places{d} = reshape (places{d}, sizes);
  endfor
  X.part = zeros (pm_local_size (X.shape, m, Pid ())) + f (places{:});
endfunction
