## [places, which] = pm_local_subscripts (X, subs): where the elements of X(subs{:}) that this rank stores lie in its
## part, and for each dimension which ones of the subscripts these are.
function [places, which] = pm_local_subscripts (X, subs)
  stored = pm_inds (X);
  places = which = subs;
  for d = 1:numel (subs)
    if (strcmp (subs{d}, ":"))
      which{d} = stored{d};
    else
      place = lookup (stored{d}, subs{d}(:)', "m");
      which{d} = find (place);
      places{d} = place(which{d});
    endif
  endfor
endfunction
