## What a status of limosa_probe is in this package; of [] the one of no message.
function stat = mpi_status (found, comm)
  stat = struct ("MPI_SOURCE", 0, "MPI_TAG", 0, "MPI_ERROR", 0, "MPI_Get_count", 0, "cancelled", 0);
  if (! isempty (found))
    stat.MPI_SOURCE = found.source;
    stat.MPI_TAG = found.tag;
    stat.MPI_Get_count = __limosa_bytes__ (found.source, found.tag, comm);
  endif
endfunction
