## d = pm_dimension (X, d): the given dimension, or the first one that is longer than 1.
function d = pm_dimension (X, d)
  if (isempty (d))
    d = [find(X.shape != 1, 1), 1](1);
  elseif (! isscalar (d) || ! any (d == 1:numel (X.shape)))
    error ("pMatlab:shape", "there is no dimension %s: the array is %s", pm_text (d), pm_text (X.shape));
  endif
endfunction
