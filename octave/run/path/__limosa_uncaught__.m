## Prints an error that was not caught, with stack and rank, runs the program's exit handlers, and ends this process,
## so that the launcher ends the job. If several ranks fail at once, one of them prints.

function __limosa_uncaught__ (problem)
  text = sprintf ("error: %s\n", problem.message);
  folder = fileparts (fileparts (mfilename ("fullpath")));
  is_ours = arrayfun (@(frame) strncmp (frame.file, folder, numel (folder)), problem.stack(:)');
  frames = problem.stack(! is_ours);
  if (! isempty (frames))
    text = [text, "error: called from\n"];
    for k = 1:numel (frames)
      frame = frames(k);
      place = frame.name;
      if (! isempty (frame.file) && ! strcmp (frame.file, frame.name))
        place = sprintf ("%s (%s)", frame.name, frame.file);
      endif
      text = [text, sprintf("    %s at line %d column %d\n", place, frame.line, frame.column)];
    endfor
  endif
  text = [text, __limosa_hint__(problem)];
  rank = getenv ("LIMOSA_RANK");
  lines = strsplit (strtrim (text), "\n");
  if (! isempty (rank) && ! strcmp (getenv ("LIMOSA_SIZE"), "1"))
    text = sprintf ("[rank %s] %s\n", [repmat({rank}, 1, numel (lines)); lines]{:});
  endif
  is_of_death = strcmp (problem.identifier, "limosa:proc_aborted");
  __limosa_leave__ (text, is_of_death && ! isempty (rank));
  quit (1);
endfunction
