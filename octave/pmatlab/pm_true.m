## r = pm_true (X): the value of `if X`: X has elements, and none of them is zero. Collective; all ranks get it.
function r = pm_true (X)
  own = pm_own (X);
  r = ! isempty (X) && ! pm_agree (nnz (own) < numel (own));
endfunction
