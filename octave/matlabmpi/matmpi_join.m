## matmpi_join (): a rank in the background joins its job.

function matmpi_join ()
  global MPI_COMM_WORLD;
  if (MPI_COMM_WORLD.by_files)
    return;
  end
  if (isempty (MPI_COMM_WORLD.port))
    __matmpi_world__ ();
  else
    __matmpi_connect__ (MPI_COMM_WORLD.port, fullfile (MPI_COMM_WORLD.folder, "ready"));
  end
end
