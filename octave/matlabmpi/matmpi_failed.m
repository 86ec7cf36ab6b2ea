## matmpi_failed (failure): the script of a rank that MPI_Run has started has failed. Rank 0 in an interpreter goes on
## with the error, and the others learn that nothing more will come from it. A rank in the background ends, and with it,
## where messages travel by memory, the others in the background.

function matmpi_failed (failure)
  global MPI_COMM_WORLD;
  comm = MPI_COMM_WORLD;
  if (comm.rank == comm.host_rank)
    matmpi_finish (comm);
    rethrow (failure);
  end
  text = failure.message;
  for frame = failure.stack(:)'
    if (! strncmp (frame.name, "matmpi_", 7))
      text = sprintf ("%s\n    at line %d of %s", text, frame.line, frame.name);
    end
  end
  fflush (stdout);
  fprintf (stderr, "error: %s\n", text);
  fflush (stderr);
  id = fopen (fullfile (comm.folder, sprintf ("failed.%d", comm.rank)), "w");
  if (id >= 0)
    fputs (id, text);
    fclose (id);
  end
  if (__matmpi_is_open__ ())
    __matmpi_abort__ ();
  end
  exit (1);
end
