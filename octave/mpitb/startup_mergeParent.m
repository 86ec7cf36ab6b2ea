## startup_mergeParent
##
## A script for a process that Octave_Spawn has started: initialises MPI and joins the parent. Defines the variables
## WORLD (the new processes), NEWORLD (the parent, rank 0, and all of them), RANK (in NEWORLD) and HOSTNAME.

MPI_Init ();
WORLD = MPI_COMM_WORLD ();
NEWORLD = MPI_COMM_NULL ();
[mergeParent_info, mergeParent_parent] = MPI_Comm_get_parent ();
if mergeParent_parent == MPI_COMM_NULL ()
  error ("limosa:spawn", "startup_mergeParent: this process was not spawned");
end
[mergeParent_info, NEWORLD] = MPI_Intercomm_merge (mergeParent_parent, 1);
[mergeParent_info, RANK] = MPI_Comm_rank (NEWORLD);
HOSTNAME = gethostname ();
clear mergeParent_info mergeParent_parent
