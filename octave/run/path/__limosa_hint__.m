## hint = __limosa_hint__ (problem): a line for an error whose cause is that the script was written for a toolbox of the
## past and was started without its --dialect, or with that of a different one; "" for any other error.

function hint = __limosa_hint__ (problem)
  hint = "";
  word = unknown_name (problem);
  if (isempty (word))
    return;
  endif
  given = getenv ("LIMOSA_DIALECT");
  found = setdiff (toolboxes_with (word), given);
  likely = intersect (found, toolboxes_of_script (fileread (getenv ("OCTAVE_LIMOSA_SCRIPT"))));
  if (! isempty (likely))
    found = likely;
  endif
  if (isempty (found))
    return;
  endif
  names = struct ("matlabmpi", "MatlabMPI", "mpi", "Octave's package mpi", "mpitb", "MPITB", "pmatlab", "pMatlab");
  options = strjoin (cellfun (@(one) sprintf ("--dialect %s (%s)", one, names.(one)), found, ...
                              "UniformOutput", false), " or ");
  if (! isempty (given))
    given = sprintf (" instead of --dialect %s", given);
  endif
  hint = sprintf ("hint: %s belongs to a toolbox that limosa run must be told of: give %s%s\n", word, options, given);
endfunction

## The name of a function that this error says is missing or has other results; "" if it is another error.
function word = unknown_name (problem)
  word = "";
  if (strncmp (problem.identifier, "limosa:", 7))
    return;
  endif
  patterns = {"^'(\\w+)' undefined", "^(\\w+): function called with too many", "^(?:Invalid call to) (\\w+)", ...
              "value on the right hand side of the assignment not defined.*?(\\w+)"};
  for pattern = patterns
    found = regexp (problem.message, pattern{1}, "tokens", "once");
    if (! isempty (found))
      word = found{1};
      return;
    endif
  endfor
  if (! isempty (regexp (problem.message, '\<package\>.*\<mpi\>|\<mpi\>.*\<package\>', "once")))
    word = "pkg load mpi";
  endif
endfunction

## The toolboxes that have a function.
function found = toolboxes_with (word)
  folder = fileparts (fileparts (fileparts (mfilename ("fullpath"))));
  if (strcmp (word, "pkg load mpi"))
    found = {"mpi"};
    return;
  endif
  found = {};
  for toolbox = {"matlabmpi", "mpi", "mpitb", "pmatlab"}
    place = fullfile (folder, toolbox{1});
    source = fullfile (folder, "src", [toolbox{1}, ".cc"]);
    is_compiled = exist (source, "file") && ! isempty (strfind (fileread (source), ["DEFUN_DLD(", word, ","]));
    is_script = exist (fullfile (place, [word, ".m"]), "file") || exist (fullfile (place, ["@", word]), "dir");
    ## The functions of mpitb are generated: it has nearly all of MPI.
    if (is_compiled || is_script || (strcmp (toolbox{1}, "mpitb") && strncmp (word, "MPI_", 4)))
      found{end + 1} = toolbox{1};
    endif
  endfor
endfunction

## The toolboxes that a script can be written for, by what is different in them.
function found = toolboxes_of_script (text)
  text = regexprep (text, '^\s*[%#].*$', "", "lineanchors");
  has = @(pattern) ! isempty (regexp (text, pattern, "once"));
  found = {};
  if (has ('\<(Np|Pid|pMATLAB|pRUN|pMatlab_\w+|put_local|global_ind\w*|agg|agg_all)\>'))
    found = {"pmatlab"};
  elseif (has ('\<(MatMPI_\w+|MPI_Run|MPI_Mcast|MPI_cc)\>'))
    found = {"matlabmpi"};
  elseif (has ('pkg\s+load\s+mpi|MPI_Comm_Load'))
    found = {"mpi"};
  elseif (has ('\[\s*(info|err\w*|ierr|~)\s*,?\s*\w+[^\]]*\]\s*=\s*MPI_'))
    found = {"mpitb"};
  elseif (has ('[^\]=]=\s*MPI_Comm_(rank|size)\>'))
    found = {"matlabmpi", "mpi"};
  endif
endfunction
