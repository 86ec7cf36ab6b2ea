## R = gagg_all (A, src, op): as gagg; all ranks get the result.
function R = gagg_all (A, src = 0, op = "+")
  if (ischar (src))
    op = src;
  endif
  known = {"+", "sum", "min", "max"};
  if (! any (strcmp (op, known)))
    error ("pMatlab:arguments", "gagg: the operation is '+', 'sum', 'min' or 'max'");
  endif
  if (! isfloat (A))
    error ("limosa:class", "gagg: a value of class %s cannot be reduced; hint: double or single arrays", class (A));
  endif
  R = A;
  if (Np () > 1)
    R = __pmatlab_reduce__ (full (A), strrep (op, "sum", "+"));
  endif
endfunction
