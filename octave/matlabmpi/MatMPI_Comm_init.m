## -*- texinfo -*-
## @deftypefn {} {@var{comm} =} MatMPI_Comm_init (@var{n_proc}, @var{machines})
## Make the communicator of a job of @var{n_proc} ranks on these machines, and save it in
## @file{MatMPI/MPI_COMM_WORLD.mat}. @code{MPI_Run} calls this; the arguments are the same.
## @end deftypefn

function comm = MatMPI_Comm_init (n_proc, machines)
  if (! (isnumeric (n_proc) && isscalar (n_proc) && n_proc == fix (n_proc) && n_proc >= 1))
    error ("limosa:arg", "MPI_Run: the number of ranks is a whole number from 1 on");
  end
  if (ischar (machines))
    error ("limosa:arg", "MPI_Run: the machines are a cell of names, such as {\"%s\"}, or {} for this machine", ...
           machines);
  end
  if (! iscellstr (machines))
    error ("limosa:arg", "MPI_Run: the machines are a cell of names, not of class %s", class (machines));
  end
  settings = MatMPI_Comm_settings ();
  here = gethostname ();
  if (isempty (machines))
    machines = {here};
  end
  machines = machines(1:min (numel (machines), n_proc));
  n = numel (machines);
  asked = getenv ("MATMPI_COMM_DIR");

  comm.rank = -1;
  comm.size = double (n_proc);
  comm.save_message_flag = 0;
  comm.group = 0:n_proc - 1;
  comm.machine_id = zeros (1, n_proc);
  comm.host_rank = 0;
  comm.folder = fullfile (pwd (), "MatMPI");
  comm.by_files = ! isempty (asked);
  comm.port = "";
  comm.host_pid = getpid ();
  comm.job_key = sprintf ("%.0f-%d", 1e6 * time (), getpid ());
  db.n_machine = n;
  db.type = db.machine = db.dir = db.matlab_command = db.remote_launch = db.remote_flags = cell (1, n);
  db.n_proc = db.id_start = db.id_stop = zeros (1, n);
  db.pc_unix_dir_map = settings.pc_unix_dir_map;
  next = 1;
  for m = 1:n
    [name, is_background, type, folder] = parse (machines{m});
    if (strcmp (name, "localhost"))
      name = here;
    end
    if (isempty (folder))
      folder = comm.folder;
      if (! isempty (asked))
        folder = make_absolute_filename (asked);
      end
    else
      folder = make_absolute_filename (folder);
      comm.by_files = true;
    end
    if (! strcmp (name, here))
      comm.by_files = true;
    elseif (exist (folder, "dir") != 7)
      error ("limosa:file", "MPI_Run: there is no folder %s for messages; make it first", folder);
    end
    if (m == 1 && (is_background || ! strcmp (name, here)))
      comm.host_rank = -1;
    end
    count = sum (mod (0:n_proc - 1, n) == m - 1);
    db.machine{m} = name;
    db.type{m} = ifempty (type, settings.type);
    db.dir{m} = folder;
    db.matlab_command{m} = settings.matlab_command;
    db.remote_launch{m} = settings.remote_launch;
    db.remote_flags{m} = settings.remote_flags;
    db.n_proc(m) = count;
    db.id_start(m) = next;
    db.id_stop(m) = next + count - 1;
    comm.machine_id(next:next + count - 1) = m;
    next += count;
  end
  comm.machine_db = db;
  MPI_COMM_WORLD = comm;
  save ("-v6", fullfile (comm.folder, "MPI_COMM_WORLD.mat"), "MPI_COMM_WORLD");
end

## machine['&'][':unix'|':pc'][':'folder]
function [name, is_background, type, folder] = parse (machine)
  parts = regexp (machine, '^([^:&]+)(&?)(?::(unix|pc)(?=:|$))?(?::(.*))?$', "tokens", "once");
  if (isempty (parts))
    error ("limosa:arg", "MPI_Run: %s is no machine; the form is machine[&][:unix][:folder]", machine);
  end
  name = parts{1};
  rest = parts(2:end)(! cellfun (@isempty, parts(2:end)));
  is_background = any (strcmp (rest, "&"));
  is_type = ismember (rest, {"unix", "pc"});
  type = [rest{is_type}];
  folder = [rest{! is_type & ! strcmp(rest, "&")}];
  if (strcmp (type, "pc"))
    error ("limosa:unsupported", "MPI_Run: %s: ranks on Windows cannot be started", machine);
  end
end

function value = ifempty (value, instead)
  if (isempty (value))
    value = instead;
  end
end
