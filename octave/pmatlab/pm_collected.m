## results = pm_collected (name, args, count): what a function of Octave gives if all ranks have the whole arrays.
## Collective; all ranks get the results, which are ordinary values.
function results = pm_collected (name, args, count)
  args = cellfun (@agg_all, args, "UniformOutput", false);
  results = cell (1, max (count, 1));
  [results{:}] = feval (name, args{:});
endfunction
