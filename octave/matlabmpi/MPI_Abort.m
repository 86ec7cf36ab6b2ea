## -*- texinfo -*-
## @deftypefn {} {} MPI_Abort ()
## Kill all background ranks that @code{MPI_Run} has started from this folder; in a job of @code{limosa run} end all
## ranks.
## @end deftypefn

function MPI_Abort (quietly)
  global MPI_COMM_WORLD;
  files = glob (fullfile ("MatMPI", "pid.*"));
  if (isempty (files) && exist ("MatMPI/launcher", "file") != 2)
    if (__matmpi_is_open__ () && isempty (glob ("MatMPI")))
      __matmpi_abort__ ();
    end
    if (nargin == 0)
      disp ("MPI_Abort: there are no ranks to end: no files MatMPI/pid.*");
    end
    return;
  end
  settings = MatMPI_Comm_settings ();
  own = [];
  for k = 1:numel (files)
    parts = regexp (files{k}, '/pid\.(.*)\.(\d+)$', "tokens", "once");
    if (isempty (parts))
      continue;
    end
    [machine, pid] = deal (parts{1}, str2double (parts{2}));
    ## The number may belong to another program by now.
    end_it = sprintf ("case $(readlink /proc/%d/fd/0) in */MatMPI/MatMPIdefs*.m) kill -9 %d;; esac", pid, pid);
    if (! strcmp (machine, gethostname ()))
      system ([settings.remote_launch, machine, settings.remote_flags, matmpi_quote(end_it), " 2>/dev/null"]);
    elseif (pid == getpid ())
      own = pid;
    else
      system ([end_it, " 2>/dev/null"]);
    end
  end
  if (! isempty (own))
    system (sprintf ("kill -9 %d", own));
  end
  end_launcher ();
  __matmpi_drop__ ();
end

## The launcher of background ranks ends when these have been killed; it is awaited, so that nothing of it is left.
function end_launcher ()
  file = fullfile ("MatMPI", "launcher");
  if (exist (file, "file") != 2)
    return;
  end
  pid = str2double (fileread (file));
  for k = 1:1000
    exe = readlink (sprintf ("/proc/%d/exe", pid));
    if (waitpid (pid, WNOHANG ()) > 0 || isempty (strfind (exe, "limosa")))
      return;
    end
    if (k == 1)
      kill (pid, 15);
    elseif (k == 900)
      kill (pid, 9);
    end
    pause (0.01);
  end
end
