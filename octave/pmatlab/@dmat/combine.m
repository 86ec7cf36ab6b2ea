## Z = combine (f, X, Y, name): f of the elements of two operands, of which at least one is distributed.
##
## The result has the map of the first distributed operand that has its size; a distributed operand with another map is
## moved, one that is repeated (a row, a column, a number) goes to all ranks. Of an ordinary operand each rank takes its
## own indices. With `local_too` it may also have the size of the local part.
function Z = combine (f, X, Y, name, local_too = false)
  [X, Y] = together (X, Y);
  if (isa (X, "dmat") && isa (Y, "dmat"))
    if (! isequal (X.shape, Y.shape))
      sizes = joint_size (X.shape, Y.shape);
      if (isempty (sizes))
        error ("pMatlab:shape", "%s: the operands have different sizes: %s and %s", name, pm_text (X.shape), ...
               pm_text (Y.shape));
      endif
      if (isequal (sizes, X.shape) || ! isequal (sizes, Y.shape))
        Y = agg_all (Y);
      else
        X = agg_all (X);
      endif
      Z = combine (f, X, Y, name);
      return;
    endif
    Z = X;
    if (isempty (X.chosen))
      Y = pm_move (Y, X.map);
    endif
    Z.part = f (X.part, Y.part);
    return;
  endif
  if (isa (X, "dmat"))
    [Z, plain] = deal (X, Y);
  else
    [Z, plain] = deal (Y, X);
  endif
  sizes = joint_size (Z.shape, size (plain));
  if (! isempty (sizes) && ! isequal (sizes, Z.shape))
    ## The distributed operand is repeated.
    Z = remap (f (agg_all (X), agg_all (Y)), Z.map);
  elseif (isa (X, "dmat"))
    Z.part = f (X.part, pm_cut (Y, X, name, local_too));
  else
    Z.part = f (pm_cut (X, Y, name, local_too), Y.part);
  endif
endfunction

## Ranges remain where they are if both operands have the same one, or one is an ordinary number.
function [X, Y] = together (X, Y)
  is_range = @(A) isa (A, "dmat") && ! isempty (A.chosen);
  both = isa (X, "dmat") && isa (Y, "dmat");
  if (! (is_range (X) || is_range (Y)) || ! both && (isscalar (X) || isscalar (Y))
      || both && isequal (X.chosen, Y.chosen) && eq (X.map, Y.map))
    return;
  endif
  if (isa (X, "dmat"))
    X = pm_complete (X);
  endif
  if (isa (Y, "dmat"))
    Y = pm_complete (Y);
  endif
endfunction

## The size of a combination of two arrays in which dimensions of 1 are repeated; [] if they do not fit.
function sizes = joint_size (a, b)
  a(end+1:numel (b)) = 1;
  b(end+1:numel (a)) = 1;
  sizes = max (a, b);
  sizes(a == 0 | b == 0) = 0;
  if (any (a != b & a != 1 & b != 1))
    sizes = [];
  endif
endfunction
