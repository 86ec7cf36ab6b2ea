## results = pm_dealt (name, args, count): as pm_collected; results of more than one element are dealt by the map of the
## first distributed argument.
function results = pm_dealt (name, args, count)
  X = args{find(cellfun ("isclass", args, "dmat"), 1)};
  results = pm_collected (name, args, count);
  for k = 1:numel (results)
    if ((isnumeric (results{k}) || islogical (results{k})) && numel (results{k}) > 1
        && ndims (results{k}) <= X.map.dim)
      results{k} = remap (results{k}, X.map);
    endif
  endfor
endfunction
