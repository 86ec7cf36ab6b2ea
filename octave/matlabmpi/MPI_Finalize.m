## -*- texinfo -*-
## @deftypefn {} {} MPI_Finalize ()
## Say that this rank sends and receives no more. Rank 0 goes on with the lines that follow; all others end here.
##
## If the lines that follow in the same file end ranks themselves, by @code{exit} or @code{quit}, all ranks go on with
## them, as in MatlabMPI 1.2. With @code{MPI_Run} rank 0 goes on only if it runs in the interpreter that has called it.
## @end deftypefn

function MPI_Finalize ()
  global MPI_COMM_WORLD;
  if (! isstruct (MPI_COMM_WORLD))
    error ("limosa:other", "MPI_Finalize: MPI_Init was not called");
  end
  matmpi_finish (MPI_COMM_WORLD);
  if (MPI_COMM_WORLD.rank != MPI_COMM_WORLD.host_rank && ! ends_ranks_itself (dbstack ()))
    exit (0);
  end
end

## Whether a script ends its ranks in the lines after the one that has called MPI_Finalize.
function does = ends_ranks_itself (stack)
  does = false;
  if (numel (stack) > 1 && exist (stack(2).file, "file") == 2)
    lines = strsplit (fileread (stack(2).file), "\n", "CollapseDelimiters", false);
    lines = regexprep (lines(stack(2).line:end), '[%#].*', "");
    lines{1} = regexprep (lines{1}, '.*MPI_Finalize', "");
    does = ! isempty (regexp (strjoin (lines, "\n"), '(^|[\s;,)])(exit|quit)\s*($|[;,(\n])', "once"));
  end
end
