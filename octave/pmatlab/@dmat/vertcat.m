## Y = [X1; X2; ...]: see cat.
function Y = vertcat (varargin)
  Y = cat (1, varargin{:});
endfunction
