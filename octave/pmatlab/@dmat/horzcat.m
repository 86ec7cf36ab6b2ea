## Y = [X1, X2, ...]: see cat.
function Y = horzcat (varargin)
  Y = cat (2, varargin{:});
endfunction
