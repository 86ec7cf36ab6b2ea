## NumCmds_Send (names, values)
##
## Sends variables of these names, with these values, to the processes of the NumCmds protocol. The one called "cmd" is
## evaluated there, with the others as variables; without it the command before is evaluated again. `values` is a cell
## row for all processes, or has a row for each of them.

function NumCmds_Send (names, values)
  global NEWORLD NSLAVES NOCTAVES TAG
  n = NOCTAVES;
  if isempty (n)
    n = NSLAVES;
  end
  if isempty (NEWORLD) || isempty (TAG) || isempty (n)
    error ("limosa:arg", "NumCmds_Send: call Octave_Spawn and NumCmds_Init first");
  end
  if nargin != 2 || ! iscellstr (names) || ! iscell (values) || columns (names) != columns (values) ...
     || ! any (rows (values) == [1, n])
    error ("limosa:arg", "NumCmds_Send: a cell of names, and a cell with a row of values for all or for each process");
  end
  if ! all (cellfun (@isvarname, names))
    error ("limosa:name", "NumCmds_Send: a name is not that of a variable");
  end
  for row = 1:rows (values)
    message = packed (names, values(row,:), NEWORLD);
    if rows (values) == 1
      receivers = 1:n;
    else
      receivers = row;
    end
    for receiver = receivers
      MPI_Send (message, receiver, TAG, NEWORLD);
    end
  end
end

## The variables are made here so that MPI_Pack knows their names; no other variable of this function may be in the way.
function message__ = packed (names__, values__, comm__)
  bytes__ = 0;
  for i__ = 1:numel (names__)
    eval ([names__{i__} " = values__{i__}; [info__, n__] = MPI_Pack_size (" names__{i__} ", comm__);"]);
    bytes__ += n__;
  end
  message__ = blanks (bytes__);
  position__ = 0;
  for i__ = 1:numel (names__)
    eval (["MPI_Pack (" names__{i__} ", message__, position__, comm__);"]);
  end
end
