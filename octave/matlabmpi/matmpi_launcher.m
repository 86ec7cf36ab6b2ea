## matmpi_launcher (): the program `limosa`.

function file = matmpi_launcher ()
  file = file_in_path (getenv ("PATH"), "limosa");
  if (isempty (file))
    error ("limosa:file", "MPI_Run: there is no program limosa in PATH; activate the environment that holds Limosa");
  end
end
