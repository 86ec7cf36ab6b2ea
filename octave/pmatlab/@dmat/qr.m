## [q, r] = qr (X): of a square matrix, with its map. Each rank has the whole matrix for a moment. Collective.
function [q, r] = qr (X)
  if (! issquare (X))
    error ("pMatlab:shape", "qr: the matrix is %s, and must be square", pm_text (X.shape));
  endif
  whole = agg_all (X);
  if (nargout < 2)
    q = remap (qr (whole), X.map);
  else
    [q, r] = qr (whole);
    q = remap (q, X.map);
    r = remap (r, X.map);
  endif
endfunction
