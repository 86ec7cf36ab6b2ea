## part = pm_cut (A, X, name, local_too): what this rank's part of X needs of an ordinary array.
function part = pm_cut (A, X, name, local_too = false)
  if (isscalar (A))
    part = A;
    return;
  endif
  sizes = size (A);
  sizes(end+1:numel (X.shape)) = 1;
  if (numel (sizes) == numel (X.shape) && all (sizes == X.shape | sizes == 1))
    places = pm_inds (X);
    for d = find (sizes == 1)
      places{d} = ones (1, min (numel (places{d}), 1));
    endfor
    if (inmap (X.map, Pid ()))
      part = A(places{:});
    else
      part = A(zeros (0, 0));
    endif
  elseif (local_too && isequal (size (A), size (X.part)))
    part = A;
  else
    error ("pMatlab:shape", "%s: the distributed operand is %s, the other one %s", name, pm_text (X.shape), ...
           pm_text (size (A)));
  endif
endfunction
