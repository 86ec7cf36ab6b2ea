## [shape, m, cls] = pm_shape (args): the sizes and the map in a constructor's arguments: (N, map), ([M N], map),
## (M, N, map), ...
function [shape, m, cls] = pm_shape (args)
  [args, m, cls] = pm_map_argument (args);
  shape = double ([args{:}]);
  if (isscalar (shape))
    shape = [shape shape];
  endif
  if (isempty (shape) || any (shape < 0 | shape != fix (shape)))
    error ("pMatlab:shape", "the sizes %s of a distributed array are not non-negative integers", pm_text (shape));
  endif
endfunction
