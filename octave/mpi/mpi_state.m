## state = mpi_state (state): "before" MPI_Init, "within" or "after" MPI_Finalize; with an argument it is set.
function state = mpi_state (state)
  persistent now = "before";
  if (nargin > 0)
    now = state;
  endif
  state = now;
endfunction
