"""Nothing to do: importing boostmpi has initialised MPI. Some scripts say ``import boostmpi.autoinit``."""
