## [i, j] = find (X), [i, j, v] = find (X), k = find (X): the non-zero elements, as Octave lists them; find (X, n) and
## find (X, n, "last") the first or last n. Collective; all ranks get them, as ordinary arrays.
function [i, j, v] = find (X, varargin)
  X = pm_complete (X);
  own = pm_own (X);
  lists = pm_inds_owned (X);
  places = find (own);
  v = full (own(places)(:));
  k = ones (numel (places), 1);
  at = cell (1, max (numel (lists), 2));
  [at{:}] = ind2sub ([size(own), 1], places(:));
  for d = 1:numel (lists)
    k += (reshape (lists{d}(at{d}), [], 1) - 1) * prod (X.shape(1:d-1));
  endfor
  if (Np () > 1)
    found = __pmatlab_swap__ (repmat ({{k, v}}, 1, Np ()), 0:Np () - 1, 0:Np () - 1);
    found = vertcat (found{:});
    [k, v] = deal (vertcat (found{:,1}), vertcat (found{:,2}));
  endif
  [k, order] = sort (k);
  v = v(order);
  if (nargin > 1)
    n = min (varargin{1}, numel (k));
    chosen = 1:n;
    if (nargin > 2 && strcmp (varargin{2}, "last"))
      chosen = numel (k) - n + 1:numel (k);
    endif
    [k, v] = deal (k(chosen), v(chosen));
  endif
  if (numel (X.shape) == 2 && X.shape(1) == 1 && X.shape(2) != 1)
    [k, v] = deal (k.', v.');
  endif
  i = k;
  if (nargout > 1)
    i = mod (k - 1, X.shape(1)) + 1;
    j = floor ((k - 1) / X.shape(1)) + 1;
  endif
endfunction
