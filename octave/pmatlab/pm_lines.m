## lines = pm_lines (m, d): a map for the same ranks that divides dimension d only, in blocks; d of 2.
function lines = pm_lines (m, d)
  shape = [1 1];
  shape(d) = numel (m.grid);
  lines = map (shape, {}, m.grid(:)');
endfunction
