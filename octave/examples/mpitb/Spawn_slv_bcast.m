## Spawn_slv_bcast ([n])
##
## Starts n processes with startup_bcastSlv, which receive one command by broadcast: to send their rank.

function Spawn_slv_bcast (n = 2)
  global NEWORLD
  MPITB_Init (n);
  Octave_Spawn (n, {"--eval", "startup_bcastSlv"});
  cmd = blanks (100);
  text = "global NEWORLD RANK; MPI_Send (RANK, 0, 5, NEWORLD);";
  cmd(1:numel (text)) = text;
  MPI_Bcast (cmd, 0, NEWORLD);
  seen = [];
  for child = 1:n
    rank = 0;
    MPI_Recv (rank, MPI_ANY_SOURCE, 5, NEWORLD);
    seen(end+1) = rank;
  end
  if ! isequal (sort (seen), 1:n)
    error ("limosa:damaged", "Spawn_slv_bcast: heard of %s", mat2str (seen));
  end
  printf ("%d processes have obeyed\n", n);
  MPI_Finalize;
end
