## replies = Spawn_slv_merge ([n])
##
## Starts n processes with startup_mergeParent; each receives a matrix and sends back its square.

function replies = Spawn_slv_merge (n = 2)
  global NEWORLD
  MPITB_Init (n);
  code = ["startup_mergeParent; m = zeros (2); MPI_Recv (m, 0, 1, NEWORLD); m = m * m; ", ...
          "MPI_Send (m, 0, 2, NEWORLD); MPI_Finalize;"];
  Octave_Spawn (n, {"--eval", code});
  replies = {};
  for child = 1:n
    m = [1, child; 0, 1];
    MPI_Send (m, child, 1, NEWORLD);
    MPI_Recv (m, child, 2, NEWORLD);
    if ! isequal (m, [1, 2 * child; 0, 1])
      error ("limosa:damaged", "Spawn_slv_merge: process %d replied %s", child, mat2str (m));
    end
    replies{child} = m;
  end
  printf ("%d processes have squared their matrices\n", n);
  MPI_Finalize;
end
