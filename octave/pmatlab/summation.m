## S = summation (S, X1, X2, ...): the sum of arrays of the size of S, in the map of S. Collective.
function S = summation (S, varargin)
  everything = repmat ({":"}, 1, ndims (S));
  total = S;
  for k = 1:numel (varargin)
    term = S;
    term(everything{:}) = varargin{k};
    if (k == 1)
      total = term;
    else
      total = total + term;
    endif
  endfor
  S = total;
endfunction
