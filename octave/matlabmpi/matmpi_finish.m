## matmpi_finish (comm): say to the other ranks that nothing more will come from this one.

function matmpi_finish (comm)
  __matmpi_finalize__ ();
  if (comm.host_pid == getpid () && exist (comm.folder, "dir") == 7)
    matmpi_touch (fullfile (comm.folder, "ended.0"));
  end
end
