## -*- texinfo -*-
## @deftypefn {} {} MPI_Init ()
## Join the job. Every rank calls this once; then @code{MPI_COMM_WORLD} is the communicator of all ranks.
## @end deftypefn

function MPI_Init ()
  global MPI_COMM_WORLD;
  evalin ("caller", "global MPI_COMM_WORLD;");
  if (! isempty (MPI_COMM_WORLD))
    return;
  end
  [rank, n, key] = __matmpi_world__ ();
  asked = getenv ("MATMPI_COMM_DIR");
  comm.rank = rank;
  comm.size = n;
  comm.save_message_flag = 0;
  comm.group = 0:n - 1;
  comm.machine_id = ones (1, n);
  comm.host_rank = 0;
  comm.folder = fullfile (pwd (), "MatMPI");
  comm.by_files = ! isempty (asked);
  comm.port = "";
  comm.host_pid = 0;
  comm.job_key = key;
  settings = MatMPI_Comm_settings ();
  db.n_machine = 1;
  db.type = {settings.type};
  db.machine = {gethostname()};
  db.dir = {comm.folder};
  if (! isempty (asked))
    db.dir = {make_absolute_filename(asked)};
  end
  db.matlab_command = {settings.matlab_command};
  db.remote_launch = {settings.remote_launch};
  db.remote_flags = {settings.remote_flags};
  db.n_proc = n;
  db.id_start = 1;
  db.id_stop = n;
  db.pc_unix_dir_map = settings.pc_unix_dir_map;
  comm.machine_db = db;
  MPI_COMM_WORLD = comm;
end
