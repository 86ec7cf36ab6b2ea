## x = patternmatch (D, pattern): for each row of a matrix the mean squared difference from a pattern, which has as many
## elements as the matrix has columns: the smaller, the better the match. A column, distributed as the rows of D.
function x = patternmatch (D, pattern)
  if (ndims (D) != 2 || isa (pattern, "dmat") || ! isvector (pattern) || numel (pattern) != size (D, 2))
    error ("limosa:size", ["patternmatch: D must be a matrix, and the pattern an ordinary vector with as many " ...
                           "elements as D has columns (%d), not %s"], size (D, 2), mat2str (size (pattern)));
  endif
  x = sum ((D - repmat (pattern(:).', size (D, 1), 1)) .^ 2, 2) / numel (pattern);
endfunction
