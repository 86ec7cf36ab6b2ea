## comm = mpi_check (name, needed, arguments): the communicator, which is the last of the arguments. An error unless
## MPI is initialized and all are there. A call of one argument may leave it out, as in early versions of the package.
function comm = mpi_check (name, needed, arguments)
  if (! strcmp (mpi_state (), "within"))
    remedies = struct ("before", "call MPI_Init first", "after", "MPI_Finalize has been called");
    error ("limosa:other", "%s: MPI is not initialized: %s", name, remedies.(mpi_state ()));
  endif
  if (needed == 1 && isempty (arguments))
    comm = limosa_world ();
    return;
  endif
  if (numel (arguments) != needed)
    error ("limosa:arg", "%s: there are %d arguments, and %d are needed; see help %s", name, numel (arguments), ...
           needed, name);
  endif
  comm = arguments{end};
  if (! isa (comm, "int32") || ! isscalar (comm))
    error ("limosa:comm", "%s: the last argument is of class %s and no communicator; take MPI_COMM_WORLD", name, ...
           class (comm));
  endif
endfunction
