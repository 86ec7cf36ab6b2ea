## Y = conv2 (X, k, "same") of each local part on its own: an overlap and synch bring the neighbour's elements.
function Y = conv2 (X, k, shape = "full")
  if (! isa (X, "dmat") || ! strcmp (shape, "same"))
    error ("pMatlab:arguments", "conv2: of a distributed array there is conv2 (X, k, \"same\")");
  endif
  Y = X;
  if (! isempty (X.part))
    Y.part = conv2 (X.part, k, "same");
  endif
endfunction
