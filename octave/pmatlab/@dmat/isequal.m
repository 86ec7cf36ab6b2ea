## r = isequal (X, Y, ...): whether all arrays have the same size and equal elements, whatever their maps. Collective;
## all ranks get the same answer.
function r = isequal (varargin)
  first = find (cellfun ("isclass", varargin, "dmat"), 1);
  X = varargin{first};
  r = true;
  for k = setdiff (1:nargin, first)
    Y = varargin{k};
    r = r && (isnumeric (Y) || islogical (Y) || ischar (Y)) && ndims (X) == ndims (Y) && all (size (X) == size (Y));
    if (r)
      r = ! pm_agree (nnz (pm_own (ne (X, Y))) > 0);
    endif
  endfor
endfunction
