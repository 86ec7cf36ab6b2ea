## pm_begin (): joins the ranks of the job, and makes the global pMATLAB that of this rank. Collective.
function pm_begin ()
  global pMATLAB MPI_COMM_WORLD
  if (! isempty (pMATLAB) && pMATLAB.comm_size > 1)
    return;
  endif
  MPI_Init ();
  [rank, n] = __pmatlab_ranks__ (__matmpi_comm__ ());
  __pmatlab_conditions__ ();
  evalin ("base", "global pMATLAB");  # programs use it without saying so
  pMATLAB = struct ("comm", MPI_COMM_WORLD, "comm_size", n, "my_rank", rank, "leader", 0, "host", 0, ...
                    "pList", 0:n-1, "tag_num", 0, "tag", "tag-0");
endfunction
