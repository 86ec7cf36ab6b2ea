## R = gagg (A, dest, op): reduces an ordinary array (double or single, of one size) over all ranks. op: '+' or 'sum'
## (without it), 'min', 'max'. Rank 0 gets the result, and `dest` if it is given; the others get their own array back.
## Collective.
function R = gagg (A, dest = 0, op = "+")
  R = gagg_all (A, 0, op);
  if (! any (Pid () == [0, dest]))
    R = A;
  endif
endfunction
