## Spawn_slv_nostartup ([n])
##
## Starts n processes with MPI_Comm_spawn alone, and talks to them by the intercommunicator. The argument is a text with
## addpath commands for the toolbox, which nothing else adds here.

function Spawn_slv_nostartup (n = 2, paths = "")
  MPI_Init;
  code = [paths, "MPI_Init; [i, parent] = MPI_Comm_get_parent; [i, r] = MPI_Comm_rank (MPI_COMM_WORLD); ", ...
          "MPI_Send (r, 0, 1, parent); MPI_Comm_disconnect (parent); MPI_Finalize;"];
  program = fullfile (OCTAVE_EXEC_HOME (), "bin", "octave-cli");
  [info, children, errors] = MPI_Comm_spawn (program, {"--no-gui", "-q", "--eval", code}, n, MPI_INFO_NULL, 0, ...
                                             MPI_COMM_SELF);
  for child = 0:n-1
    r = -1;
    MPI_Recv (r, child, 1, children);
    if r != child
      error ("limosa:damaged", "Spawn_slv_nostartup: process %d says it is %d", child, r);
    end
  end
  MPI_Comm_disconnect (children);
  printf ("%d processes have reported\n", n);
  MPI_Finalize;
end
