## Y = reshape (X, sizes): without moving elements, where only the last dimension is divided and keeps its length.
## Otherwise all ranks exchange elements; the result has the map of X, if that has as many dimensions and divides none
## that is too short, and blocks of the longest dimension if not.
function Y = reshape (X, varargin)
  free = cellfun (@isempty, varargin);
  if (sum (free) == 1 && numel (varargin) > 1)
    varargin{free} = prod (X.shape) / prod ([varargin{! free}]);
  endif
  sizes = double ([varargin{:}]);
  sizes(3:end) = sizes(3:end);
  while (numel (sizes) > 2 && sizes(end) == 1)
    sizes(end) = [];
  endwhile
  if (prod (sizes) != prod (X.shape) || any (sizes != fix (sizes)))
    error ("pMatlab:shape", "reshape: %s elements cannot become %s", pm_text (X.shape), pm_text (sizes));
  endif
  X = pm_complete (X);
  m = X.map;
  lengths = cells (m);
  if (all (lengths(1:end-1) == 1) && sizes(end) == X.shape(end) && ! any (overlaps (m)))
    specs = repmat (struct ("dist", "b", "b_size", []), 1, numel (sizes));
    specs(end) = m.dist_spec(end);
    m = map ([ones(1, numel (sizes) - 1), lengths(end)], specs, m.grid(:)');
    Y = dmat (sizes, m, reshape (X.part, pm_local_size (sizes, m, Pid ())));
    return;
  endif
  if (numel (sizes) != m.dim || any (sizes < lengths))
    [~, longest] = max (sizes);
    shape = ones (1, numel (sizes));
    shape(longest) = numel (m.grid);
    m = map (shape, {}, m.grid(:)');
  endif
  Y = pm_reshape (X, sizes, m);
endfunction
