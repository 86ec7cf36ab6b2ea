## values = pm_outputs (values, d): the one of a dimension, or all, as outputs of a function.
function values = pm_outputs (values, d)
  if (! isempty (d))
    if (! isscalar (d) || ! any (d == 1:numel (values)))
      error ("pMatlab:shape", "there is no dimension %s: the array has %d", pm_text (d), numel (values));
    endif
    values = values(d);
  endif
endfunction
