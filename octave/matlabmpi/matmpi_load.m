## values = matmpi_load (file): the cell of values in the file of a message.

function values = matmpi_load (file)
  try
    values = load (file).varargin;
  catch failure
    error ("limosa:file", "MPI_Recv: the message in %s cannot be read: %s", file, failure.message);
  end
end
