## specs = pm_distributions (given, dim): the third form of a map's dist_spec, with an entry for each dimension.
function specs = pm_distributions (given, dim)
  if (isempty (given))
    given = "b";
  endif
  if (ischar (given))
    if (! any (strcmp (given, {"b", "c"})))
      error ("pMatlab:map", "MAP CONSTRUCTOR: dist_spec '%s' is no distribution; hint: 'b', 'c', or a struct array \
with dist and b_size", given);
    endif
    given = struct ("dist", given);
  endif
  if (! isstruct (given) || ! isfield (given, "dist"))
    error ("pMatlab:map", "MAP CONSTRUCTOR: dist_spec is {}, 'b', 'c', or a struct array with the fields dist and \
b_size; it is a %s", class (given));
  endif
  if (isscalar (given))
    given = repmat (given, 1, dim);
  endif
  if (numel (given) != dim)
    error ("pMatlab:map", "MAP CONSTRUCTOR: dist_spec has %d entries, but the grid %d dimensions", numel (given), dim);
  endif
  specs = struct ("dist", {given.dist}, "b_size", []);
  for d = 1:dim
    switch (specs(d).dist)
      case {"b", "c"}
      case "bc"
        if (! isfield (given, "b_size") || ! isnumeric (given(d).b_size) || ! isscalar (given(d).b_size)
            || given(d).b_size < 1 || given(d).b_size != fix (given(d).b_size))
          error ("pMatlab:map", "MAP CONSTRUCTOR: dimension %d is block-cyclic; b_size is a positive integer", ...
                 d);
        endif
        specs(d).b_size = double (given(d).b_size);
      otherwise
        error ("pMatlab:map", "MAP CONSTRUCTOR: '%s' of dimension %d is no distribution; hint: 'b', 'c' or 'bc'", ...
               disp (specs(d).dist)(1:end-1), d);
    endswitch
  endfor
endfunction
