## -*- texinfo -*-
## @deftypefn {} {@var{text} =} MPI_Run (@var{m_file}, @var{n_proc}, @var{machines})
## Start a script on @var{n_proc} ranks, and return the text with which the calling interpreter runs it as rank 0.
##
## @example
## eval (MPI_Run ("prog", 4, @{@}))
## @end example
##
## @var{machines} is a cell of names, @code{@{@}} for this machine. Each name has the form
## @code{machine[&][:unix][:folder]}: with @qcode{"&"} after the name of this machine rank 0 runs in the background,
## too, and the returned text is empty; @var{folder} is for the messages to the ranks of that machine, which then travel
## as files.
##
## The folder @file{MatMPI} is made in the current one; the output of background ranks is in
## @file{MatMPI/@var{m_file}.@var{rank}.out}. It must not exist before: see @code{MatMPI_Delete_all}.
## @seealso{MPI_Abort, MatMPI_Delete_all, MPI_Finalize}
## @end deftypefn

function text = MPI_Run (m_file, n_proc, machines)
  if (nargin != 3)
    error ("limosa:arg", "MPI_Run: this is how to call it: eval (MPI_Run (m_file, n_proc, machines))");
  end
  if (! isempty (getenv ("LIMOSA_RANK")))
    error ("limosa:other", "MPI_Run: this Octave is a rank of a job already, and ranks cannot start a second one");
  end
  check_script (m_file);
  if (exist ("MatMPI", "dir") == 7)
    error ("limosa:file_exists", ["MPI_Run: the folder MatMPI of an earlier run is there; MPI_Abort ends its " ...
                                  "ranks, MatMPI_Delete_all removes it"]);
  end
  if (! mkdir ("MatMPI"))
    error ("limosa:file", "MPI_Run: the folder MatMPI cannot be made in %s", pwd ());
  end
  unwind_protect
    has_started = false;
    comm = MatMPI_Comm_init (n_proc, machines);
    start (m_file, comm);
    has_started = true;
  unwind_protect_cleanup
    ## Without this the same call would fail for another reason the next time.
    if (! has_started)
      MPI_Abort ("quietly");
      MatMPI_Delete_all ();
    end
  end_unwind_protect
  text = "";
  if (comm.host_rank == 0)
    text = MatMPI_Commands (m_file, 0, comm);
  end
end

function check_script (m_file)
  if (! ischar (m_file) || rows (m_file) != 1)
    error ("limosa:arg", "MPI_Run: the first argument is the name of a script, not of class %s", class (m_file));
  end
  if (strncmp (m_file, "compiled ", 9))
    MPI_cc (strrep (m_file(10:end), ".exe", ""));
  end
  file = [m_file, ".m"];
  if (! isvarname (m_file))
    error ("limosa:arg", "MPI_Run: %s is no name of a script; give it without a folder and without .m", m_file);
  end
  if (exist (file, "file") != 2)
    error ("limosa:arg", "MPI_Run: there is no script %s in %s or on the path", file, pwd ());
  end
  try
    __parse_file__ (file_in_loadpath (file));
  catch failure
    error ("limosa:arg", "MPI_Run: %s cannot be run: %s", file, failure.message);
  end
end

## Writes what starts the ranks, and starts those in the background.
function start (m_file, comm)
  db = comm.machine_db;
  is_host = comm.host_rank == 0;
  first = double (is_host);
  if (! comm.by_files && is_host && comm.size > 1)
    comm.port = __matmpi_port__ ();
  elseif (! comm.by_files && is_host)
    __matmpi_alone__ ();
  end
  MPI_COMM_WORLD = comm;
  save ("-v6", fullfile (comm.folder, "MPI_COMM_WORLD.mat"), "MPI_COMM_WORLD");
  commands = {};
  for m = 1:db.n_machine
    machine = db.machine{m};
    ranks = db.id_start(m) - 1:db.id_stop(m) - 1;
    for rank = ranks
      printf ("MPI_Run: rank %d on %s\n", rank, machine);
    end
    ranks = ranks(ranks >= first);
    if (isempty (ranks))
      continue;
    end
    cases = "";
    for rank = ranks
      [defs, command] = MatMPI_Commands (m_file, rank, comm);
      write (fullfile (comm.folder, sprintf ("MatMPIdefs%d.m", rank)), defs);
      cases = [cases, sprintf("%d)\n%s;;\n", rank, command)];
    end
    script = sprintf ("MatMPI/Unix_Commands.%s.%d.sh", machine, ranks(1));
    write (script, sprintf ("# Runs one rank of this machine, or starts all of them in the background.\ncd %s || exit\n\
case $1 in\n%s*) for rank in%s; do sh %s $rank & done;;\nesac\n", matmpi_quote (pwd ()), cases, ...
                            sprintf (" %d", ranks), script));
    if (! comm.by_files)
      for rank = ranks
        commands{end + 1} = sprintf ("-n 1 sh %s %d", script, rank);
      end
    elseif (strcmp (machine, gethostname ()))
      commands{end + 1} = ["sh ", script];
    else
      remote = sprintf ("cd %s && sh %s", matmpi_quote (pwd ()), script);
      commands{end + 1} = [db.remote_launch{m}, machine, db.remote_flags{m}, matmpi_quote(remote)];
    end
  end
  if (isempty (commands))
    return;
  end
  if (comm.by_files)
    line = strjoin (commands, "\n");
  else
    line = [matmpi_quote(matmpi_launcher ()), " run ", strjoin(commands, " : ")];
    line = ["echo $$ >MatMPI/launcher\nexec ", line];
  end
  write ("MatMPI/Unix_Commands.sh", [line, "\n"]);
  printf ("%s\n", line);
  ## In a session of its own: Ctrl-C in the interpreter is not meant for ranks in the background.
  launcher = system ("exec setsid sh MatMPI/Unix_Commands.sh </dev/null >MatMPI/limosa.out 2>&1", false, "async");
  if (! isempty (comm.port))
    meet (comm, launcher);
  end
end

## Waits for the background ranks, and begins the job with them.
function meet (comm, launcher)
  ready = fullfile (comm.folder, "ready");
  while (exist (ready, "file") != 2)
    if (waitpid (launcher, WNOHANG ()) != 0)
      matmpi_explain ("MPI_Run", "the background ranks have not started");
    end
    pause (0.005);
  end
  __matmpi_accept__ (comm.port);
end

function write (file, text)
  [id, problem] = fopen (file, "w");
  if (id < 0)
    error ("limosa:file", "MPI_Run: %s cannot be made: %s", file, problem);
  end
  fputs (id, text);
  fclose (id);
end
