## whole = pm_undivided (m, d): a map for the same ranks which does not divide dimension d; a different one is divided
## in its place.
function whole = pm_undivided (m, d)
  lengths = cells (m);
  if (lengths(d) == 1)
    whole = m;
    return;
  endif
  other = find ((1:m.dim) != d, 1);
  lengths(other) *= lengths(d);
  lengths(d) = 1;
  whole = map (lengths, {}, m.grid(:)');
endfunction
