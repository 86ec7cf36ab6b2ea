## Z = combine (f, X, Y, name): f of the elements of two operands, of which at least one is distributed.
##
## Two distributed operands have the same size and the same map. A plain one is a number, or has the size of the whole
## array (or 1 in some dimensions): each rank takes its own indices. With `local_too` it may also have the size of the
## local part.
function Z = combine (f, X, Y, name, local_too = false)
  if (isa (X, "dmat") && isa (Y, "dmat"))
    if (! isequal (X.shape, Y.shape))
      error ("pMatlab:shape", "%s: the operands have different sizes: %s and %s", name, pm_text (X.shape), ...
             pm_text (Y.shape));
    endif
    if (! eq (X.map, Y.map))
      error ("pMatlab:map", "%s: the operands have different maps: %s; hint: remap (Y, X.map), or Z(:,:) = Y with a Z \
of the map of X", name, pm_difference (X.map, Y.map));
    endif
    Z = X;
    Z.part = f (X.part, Y.part);
  elseif (isa (X, "dmat"))
    Z = X;
    Z.part = f (X.part, pm_cut (Y, X, name, local_too));
  else
    Z = Y;
    Z.part = f (pm_cut (X, Y, name, local_too), Y.part);
  endif
endfunction
