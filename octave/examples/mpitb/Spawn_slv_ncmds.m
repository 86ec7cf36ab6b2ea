## Spawn_slv_ncmds ([n])
##
## Starts n processes under the NumCmds protocol and sends them commands with variables: one for all, one with a value
## for each, the same command again with new values, and the end.

function Spawn_slv_ncmds (n = 2)
  global NEWORLD TAG
  MPITB_Init (n);
  Octave_Spawn (n);
  NumCmds_Init (0, true, 777, false);
  NumCmds_Send ({"cmd", "scale"}, {"x = scale * RANK;", 10});
  values = [repmat({"y = x + shift; MPI_Send (y, 0, 9, NEWORLD);"}, n, 1), num2cell((1:n).')];
  NumCmds_Send ({"cmd", "shift"}, values);
  collect (n, 11 * (1:n), NEWORLD);
  NumCmds_Send ({"shift"}, {0.5});
  collect (n, 10 * (1:n) + 0.5, NEWORLD);
  NumCmds_Send ({"cmd"}, {"break"});
  printf ("%d processes have done all commands\n", n);
  MPI_Finalize;
end

function collect (n, wanted, world)
  for child = 1:n
    y = 0;
    MPI_Recv (y, child, 9, world);
    if y != wanted(child)
      error ("limosa:damaged", "Spawn_slv_ncmds: process %d sent %g, not %g", child, y, wanted(child));
    end
  end
end
