## pMatlab_Finalize: ends all ranks but rank 0, which goes on as a program of one rank.
MPI_Finalize;
pm_serial ();
