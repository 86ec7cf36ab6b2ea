## X(...), X.local and the other fields.
##
## X(:,:) is X. With numbers, and ranges in dimensions that the map does not divide, X(i,:) has its elements where they
## are: on the cells of the map that own index i. A range of a divided dimension gives, with a warning, an array that
## is of use only for its local parts: each rank has those of the elements that it stores. No element is moved.
function varargout = subsref (X, s)
  switch (s(1).type)
    case "."
      switch (s(1).subs)
        case {"local", "part"}
          value = X.part;
        case "map"
          value = X.map;
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
