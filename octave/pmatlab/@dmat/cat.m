## Y = cat (d, X1, X2, ...): distributed and ordinary arrays beside each other, with the map of the first distributed
## one. Collective; each rank has all elements for a moment.
function Y = cat (d, varargin)
  d = agg_all (d);
  first = find (cellfun (@(X) isa (X, "dmat"), varargin), 1);
  whole = cellfun (@agg_all, varargin, "UniformOutput", false);
  Y = cat (d, whole{:});
  if (! isempty (first) && ndims (Y) <= varargin{first}.map.dim)
    Y = remap (Y, varargin{first}.map);
  endif
endfunction
