## total = Spawn_slv_eval ([n])
##
## Starts n processes that each evaluate a text: they join this one and reduce their ranks to it.

function total = Spawn_slv_eval (n = 2)
  global NEWORLD
  MPITB_Init (n);
  Octave_Spawn (n, {"--eval", "startup_mergeParent; x = RANK; MPI_Reduce (x, [], MPI_SUM, 0, NEWORLD); MPI_Finalize;"});
  total = 0;
  MPI_Reduce (0, total, MPI_SUM, 0, NEWORLD);
  check (total, n);
  MPI_Finalize;
end

function check (total, n)
  if total != n * (n + 1) / 2
    error ("limosa:damaged", "Spawn_slv_eval: the sum is %g", total);
  end
  printf ("the ranks of %d processes add up to %d\n", n, total);
end
