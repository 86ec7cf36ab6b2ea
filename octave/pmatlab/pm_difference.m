## text = pm_difference (a, b): in what two maps differ.
function text = pm_difference (a, b)
  found = {};
  if (! isequal (cells (a), cells (b)))
    found{end+1} = sprintf ("grid %s and %s", pm_text (cells (a)), pm_text (cells (b)));
  elseif (! isequal (a.grid, b.grid))
    found{end+1} = sprintf ("ranks %s and %s", pm_text (a.grid(:)'), pm_text (b.grid(:)'));
  endif
  if (! isequal (letters (a), letters (b)))
    found{end+1} = sprintf ("distribution %s and %s", strjoin (letters (a), " "), strjoin (letters (b), " "));
  endif
  if (! isequal (overlaps (a), overlaps (b)))
    found{end+1} = sprintf ("overlap %s and %s", pm_text (overlaps (a)), pm_text (overlaps (b)));
  endif
  text = strjoin (found, ", ");
endfunction
