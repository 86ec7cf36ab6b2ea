## found = lkup_label (label, instr)
##
## The rows with this label, on all levels of what clas_instr has returned. In place of the label they have their path:
## the numbers of the rows that lead there, from outside in.

function found = lkup_label (label, instr)
  found = search (label, instr, []);
end

function found = search (label, rows, path)
  found = cell (0, 3);
  for i = 1:size (rows, 1)
    if strcmp (rows{i,1}, label)
      found(end+1,:) = {[path, i], rows{i,2:3}};
    end
    found = [found; search(label, rows{i,3}, [path, i])];
  end
end
