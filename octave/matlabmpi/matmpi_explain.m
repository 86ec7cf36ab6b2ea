## matmpi_explain (function, text): an error that says why a rank is no longer there, by what MPI_Run's ranks have left.

function matmpi_explain (where, text)
  global MPI_COMM_WORLD;
  folder = "";
  if (isstruct (MPI_COMM_WORLD))
    folder = MPI_COMM_WORLD.folder;
  end
  found = {};
  if (! isempty (folder))
    notes = glob (fullfile (folder, "failed.*"));
    for k = 1:numel (notes)
      [~, ~, rank] = fileparts (notes{k});
      found{end + 1} = sprintf ("rank %s has failed: %s", rank(2:end), strtrim (fileread (notes{k})));
    end
    log = fullfile (folder, "limosa.out");
    if (isempty (found) && exist (log, "file") == 2)
      found{end + 1} = strtrim (fileread (log));
    end
  end
  if (isempty (found))
    error ("limosa:proc_aborted", "%s: %s", where, text);
  end
  error ("limosa:proc_aborted", "%s: %s\n%s\nthe output of the ranks is in %s", where, text, ...
         strjoin (found, "\n"), folder);
end
