## look_instr (instr [, path])
##
## Prints what clas_instr has returned: the rows of one level with their numbers, labels and times, and -> where there
## is more within. `path` (numbers of rows, from outside in) says which level; without it, and at a terminal, the number
## of a row goes into it, u goes up and q ends.

function look_instr (instr, path = [])
  asks = nargin < 2 && isatty (0);
  while true
    rows = instr;
    for i = path
      rows = rows{i,3};
    end
    for i = 1:size (rows, 1)
      more = {"", "->"}{1 + ! isempty(rows{i,3})};
      printf ("%3d %-20s %10.4f %s\n", i, rows{i,1}, rows{i,2}, more);
    end
    if ! asks
      return
    end
    answer = input ("number of a row, u(p) or q(uit): ", "s");
    number = str2double (answer);
    if strcmp (answer, "q")
      return
    elseif strcmp (answer, "u")
      path = path(1:end-1);
    elseif number >= 1 && number <= size (rows, 1) && ! isempty (rows{number,3})
      path(end+1) = number;
    end
  end
end
