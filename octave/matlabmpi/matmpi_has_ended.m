## matmpi_has_ended (comm, rank): true if a rank of a job of MPI_Run is known to have ended: it has left a note, or it
## was the interpreter that has called MPI_Run, which is gone, or the launcher of the ranks in the background is gone.

function has_ended = matmpi_has_ended (comm, rank)
  has_ended = exist (fullfile (comm.folder, sprintf ("ended.%d", rank)), "file") == 2;
  if (has_ended)
    return;
  end
  if (rank == comm.host_rank)
    is_here = comm.host_pid > 0 && strcmp (comm.machine_db.machine{1}, gethostname ());
    has_ended = is_here && exist (sprintf ("/proc/%d", comm.host_pid), "dir") != 7;
  else
    launcher = fullfile (comm.folder, "launcher");
    has_ended = exist (launcher, "file") == 2 ...
                && isempty (strfind (readlink (sprintf ("/proc/%s/exe", strtrim (fileread (launcher)))), "limosa"));
  end
end
