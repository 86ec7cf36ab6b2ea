## Y = reshape (X, sizes): without moving elements, where only the last dimension is divided and keeps its length.
function Y = reshape (X, varargin)
  sizes = [varargin{:}];
  if (prod (sizes) != prod (X.shape))
    error ("pMatlab:shape", "reshape: %s elements cannot become %s", pm_text (X.shape), pm_text (sizes));
  endif
  m = X.map;
  lengths = cells (m);
  if (any (lengths(1:end-1) > 1) || sizes(end) != X.shape(end) || any (overlaps (m)))
    error ("pMatlab:map", "reshape: this would move elements between ranks (grid %s, from %s to %s); hint: it is local \
where only the last dimension is divided and keeps its length", pm_text (lengths), pm_text (X.shape), pm_text (sizes));
  endif
  specs = repmat (struct ("dist", "b", "b_size", []), 1, numel (sizes));
  specs(end) = m.dist_spec(end);
  m = map ([ones(1, numel (sizes) - 1), lengths(end)], specs, m.grid(:)');
  Y = dmat (sizes, m, reshape (X.part, pm_local_size (sizes, m, Pid ())));
endfunction
