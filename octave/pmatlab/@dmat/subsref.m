## X(...), X.local and the other fields.
##
## X(i,j) has its elements where they are: X(i,:) on the cells of the map that own index i; of a range of a divided
## dimension each rank has, in X(i1:i2,:).local, those elements that it stores. No element is moved. An operation on
## such a range moves the elements to where the map has them in an array of this size, unless both operands have the
## same range: then it is collective. X(:), X(k) with a list, and X(mask) move elements: they are collective, too.
function varargout = subsref (X, s)
  switch (s(1).type)
    case "."
      switch (s(1).subs)
        case {"local", "part"}
          value = X.part;
        case "map"
          value = X.map;
        case "chosen"
          value = X.chosen;
        case {"size", "shape"}
          value = X.shape;
        case "dim"
          value = numel (X.shape);
        case "grid"
          value = X.map.grid;
        otherwise
          error ("pMatlab:field", "a distributed array has no field '%s'; hint: local, map, size, dim, grid", ...
                 s(1).subs);
      endswitch
    case "()"
      value = pm_pick (X, s(1).subs);
    otherwise
      error ("pMatlab:index", "a distributed array cannot be indexed with {}");
  endswitch
  if (numel (s) > 1)
    [varargout{1:max (nargout, 1)}] = subsref (value, s(2:end));
  else
    varargout = {value};
  endif
endfunction
