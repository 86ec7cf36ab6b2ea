## MPITB_Init ([nslaves [, hosts]])
##
## Prepares this Octave for Octave_Spawn: MPI is initialised, and the global variables NSLAVES (how many slaves may be
## spawned), HOSTS (where, the own host last) and SPAWN_INFO (the info object to spawn with) are set. What has been in
## the global variables before counts where there is no argument; without either, NSLAVES is one less than the number
## of processors.

function MPITB_Init (nslaves, hosts)
  global NSLAVES HOSTS SPAWN_INFO
  if nargin > 1
    if ! iscellstr (hosts)
      error ("limosa:arg", "MPITB_Init: hosts must be a cell of names");
    end
    HOSTS = hosts;
    NSLAVES = numel (hosts) - 1;
  end
  if nargin > 0
    if ! isscalar (nslaves) || ! isreal (nslaves) || nslaves < 0 || nslaves != fix (nslaves)
      error ("limosa:arg", "MPITB_Init: nslaves must be a whole number, 0 or more");
    end
    NSLAVES = nslaves;
  end
  if isempty (NSLAVES)
    NSLAVES = max (1, nproc () - 1);
  end
  if isempty (HOSTS)
    HOSTS = repmat ({gethostname()}, 1, NSLAVES + 1);
  end
  [info, begun] = MPI_Initialized ();
  if ! begun
    MPI_Init ();
  end
  if isempty (SPAWN_INFO)
    SPAWN_INFO = MPI_INFO_NULL ();
  end
end
