## children = Octave_Spawn ([n [, arguments [, info]]])
##
## Starts n Octave processes and joins them: the global variable NEWORLD is the communicator of this process (rank 0)
## and the new ones, NOCTAVES their number. Without n, the global variable NSLAVES says how many. `arguments` is a cell
## with options for octave; without "--eval" among them a new process runs startup_ncmdsSlv. All of them find this
## toolbox. With the global variable DEBUG, errors on NEWORLD are returned.

function children = Octave_Spawn (n, arguments, info)
  global NSLAVES NOCTAVES DEBUG NEWORLD
  if nargin < 1
    n = NSLAVES;
  end
  if nargin < 2
    arguments = {};
  end
  if nargin < 3
    info = MPI_INFO_NULL ();
  end
  if isempty (n) || ! isscalar (n) || n != fix (n) || n < 1
    error ("limosa:arg", "Octave_Spawn: say how many processes, or call MPITB_Init first");
  end
  if ! iscellstr (arguments)
    error ("limosa:arg", "Octave_Spawn: arguments must be a cell of texts");
  end
  at = find (strcmp (arguments, "--eval"), 1);
  if isempty (at)
    arguments = [arguments, {"--eval", "startup_ncmdsSlv"}];
    at = numel (arguments) - 1;
  end
  code = "";
  for folder = toolbox_folders ()
    code = [code, "addpath ('", strrep(folder{1}, "'", "''"), "'); "];
  end
  arguments{at+1} = [code, arguments{at+1}];
  program = fullfile (OCTAVE_EXEC_HOME (), "bin", "octave-cli");
  options = {"--no-gui", "--quiet", "--no-history", "--no-window-system"};
  [result, children, errors] = MPI_Comm_spawn (program, [options, arguments], n, info, 0, MPI_COMM_SELF ());
  if result != MPI_SUCCESS () || any (errors)
    error ("limosa:spawn", "Octave_Spawn: %s did not start %d times", program, n);
  end
  [result, NEWORLD] = MPI_Intercomm_merge (children, 0);
  NOCTAVES = n;
  if ! isempty (DEBUG) && DEBUG
    MPI_Errhandler_set (NEWORLD, MPI_ERRORS_RETURN ());
  end
end

## Where the toolbox is: its functions in Octave, and the compiled ones.
function folders = toolbox_folders ()
  folders = {fileparts(mfilename ("fullpath"))};
  loaded = autoload ();
  compiled = loaded(strcmp ({loaded.function}, "MPI_Init"));
  if ! isempty (compiled)
    folders{end+1} = fileparts (compiled(1).file);
  end
end
