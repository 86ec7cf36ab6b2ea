## Y = pm_whole (X, d, name, f): f (part, d) of whole lines along a dimension. If the map divides it, the elements are
## moved to a map that does not, with a warning, and the result back. f may change the length of the lines.
function Y = pm_whole (X, d, name, f)
  X = pm_complete (X);
  d = pm_dimension (X, d);
  m = X.map;
  whole = pm_undivided (m, d);
  if (! eq (whole, m) && any (cells (m)(d) > 1))
    warning ("pMatlab:remap", "%s: dimension %d is divided (grid %s): the elements are moved to a map that has whole \
lines, and back", name, d, pm_text (cells (m)));
  else
    whole = m;
  endif
  Y = pm_move (X, whole);
  line = f (cast (zeros ([ones(1, d-1), X.shape(d), 1]), class (X.part)), d);
  Y.shape(d) = size (line, d);
  if (isempty (Y.part))
    Y.part = cast (zeros (pm_local_size (Y.shape, whole, Pid ())), class (line));
  else
    Y.part = f (Y.part, d);
  endif
  Y = pm_move (Y, m);
endfunction
