## Y = pm_along (X, d, f, join): reduces each line along a dimension to one element.
##
## Each rank reduces what it owns with f (part, d); the first cell along the dimension joins the results. So Y has the
## first cells of the map of X. If it has one element only, it is a plain number, which all ranks get.
## Collective; results are joined in the order of the cells, so that a run gives the same bits as the one before.
function Y = pm_along (X, d, f, join)
  X = pm_complete (X);
  d = pm_dimension (X, d);
  Y = pm_first_cells (X, d);
  own = pm_own (X, d);
  partial = f (own, d);  # without elements: of use for its class
  if (isempty (own) && all (X.shape > 0))
    partial = partial(zeros (0, 0));
  endif
  for other = pm_collect (X, d, partial)
    if (! isempty (other{1}))
      partial = join (partial, other{1});
    endif
  endfor
  Y = pm_reduced (Y, partial);
endfunction
