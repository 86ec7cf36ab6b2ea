## Runs in turn what the lines of standard input say, each with nothing left of the ones before, and closes what it has
## printed with a mark in both streams: see InTurn in conftest.py.

while (ischar (line = fgetl (stdin)))
  eval (line);
  clear -all
  for stream = [stdout, stderr]
    fputs (stream, "\035ended\n");
    fflush (stream);
  end
end
if (strcmp (getenv ("LIMOSA_DIALECT"), "mpitb"))
  MPI_Finalize;
end
