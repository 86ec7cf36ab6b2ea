## Y = pm_band (X, f): a matrix with zeros where f (i, j) of the global indices is false.
function Y = pm_band (X, f)
  if (numel (X.shape) != 2)
    error ("pMatlab:shape", "an array of %d dimensions has no diagonal", numel (X.shape));
  endif
  Y = pm_complete (X);
  places = pm_inds (Y);
  Y.part(! f (places{1}', places{2})) = 0;
endfunction
