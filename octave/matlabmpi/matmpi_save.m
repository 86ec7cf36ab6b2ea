## matmpi_save (file, values, fits): a file with the variable `varargin`, a cell of values. The format is that of
## MATLAB's `save -v6`, or Octave's own binary one for values that do not fit into the first.

function matmpi_save (file, varargin)
  [varargin, fits] = varargin{:};
  try
    if (fits)
      save ("-v6", file, "varargin");
    else
      save ("-binary", file, "varargin");
    end
  catch failure
    folder = fileparts (file);
    if (exist (folder, "dir") != 7)
      error ("limosa:file", "MPI_Send: there is no folder %s for the message; make it first", folder);
    end
    error ("limosa:file", "MPI_Send: %s cannot be written: %s", file, failure.message);
  end
end
