## matmpi_touch (file): make an empty file.

function matmpi_touch (file)
  [id, text] = fopen (file, "w");
  if (id < 0)
    error ("limosa:file", "MPI_Send: %s cannot be made: %s", file, text);
  end
  fclose (id);
end
