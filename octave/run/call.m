## One rank of `limosa_run`: calls the function that the caller has written into a folder, and writes what it returns.

function call ()
  folder = argv (){1};
  caller = __limosa_read__ (fullfile (folder, "call"));
  own = path ();
  path (caller{3});
  state = warning ("off", "all");
  addpath (own);
  warning (state);
  try
    result = call_for_value (caller{1}, caller{2});
  catch problem
    text = sprintf ("on rank %d: %s", limosa_rank (), problem.message);
    for frame = problem.stack(:)'
      is_start = ! isempty (strfind (frame.name, "start.m"));
      if (! is_start && ! any (strcmp (frame.name, {"call_for_value", "call"})))
        text = sprintf ("%s\n  in %s at line %d", text, frame.name, frame.line);
      endif
    endfor
    ## The first rank that fails is the one that is told of.
    own_file = fullfile (folder, sprintf ("problem%d", limosa_rank ()));
    __limosa_write__ (own_file, struct ("message", text, "identifier", problem.identifier));
    if (! exist (fullfile (folder, "problem"), "file"))
      [~] = rename (own_file, fullfile (folder, "problem"));
    endif
    limosa_abort (1);
  end_try_catch
  __limosa_write__ (fullfile (folder, sprintf ("result%d", limosa_rank ())), result);
endfunction

## The value of a function; [] if it returns none. A function that prints or returns, such as `disp`, prints.
function result = call_for_value (f, arguments)
  ans = [];
  f (arguments{:});
  result = ans;
endfunction
