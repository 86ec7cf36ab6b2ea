## Y = conv2 (X, k, "same"): each rank gets the elements around its own from their ranks. Collective.
function Y = conv2 (X, k, shape = "full")
  if (! isa (X, "dmat") || isa (k, "dmat") || ! strcmp (shape, "same"))
    error ("pMatlab:arguments", "conv2: of a distributed array there is conv2 (X, k, \"same\") with an ordinary k; \
hint: agg_all (X)");
  endif
  X = pm_complete (X);
  Y = X;
  around = pm_route (pm_own (X), @(rank) pm_inds_owned (X, rank), @(rank) widened (X, rank, size (k)));
  if (! isempty (X.part))
    around = conv2 (around, k, "same");
    wide = widened (X, Pid (), size (k));
    stored = pm_inds (X);
    Y.part = around(stored{1} - wide{1}(1) + 1, stored{2} - wide{2}(1) + 1);
  endif
endfunction

## The indices that a rank stores, with those around them that a kernel needs.
function lists = widened (X, rank, sizes)
  lists = pm_inds (X, rank);
  for d = 1:2
    if (! isempty (lists{d}))
      lists{d} = max (lists{d}(1) - sizes(d) + 1, 1):min (lists{d}(end) + sizes(d) - 1, X.shape(d));
    endif
  endfor
endfunction
