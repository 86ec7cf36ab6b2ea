## [args, m, cls] = pm_map_argument (args): takes the map, and the name of a class after it, out of a constructor's
## arguments.
function [args, m, cls] = pm_map_argument (args)
  at = find (cellfun ("isclass", args, "map"), 1);
  m = args{at};
  cls = args(at+1:end);
  if (numel (cls) > 1 || ! all (cellfun ("isclass", cls, "char")))
    error ("pMatlab:arguments", "the map is the last argument, but for the name of a class");
  endif
  args = args(1:at-1);
endfunction
