## Hello ()
##
## Every process prints its rank.

function Hello ()
  MPI_Init;
  [info, rank] = MPI_Comm_rank (MPI_COMM_WORLD);
  [info, size] = MPI_Comm_size (MPI_COMM_WORLD);
  [info, name] = MPI_Get_processor_name;
  printf ("Hello, this is process %d of %d on %s\n", rank, size, name);
  MPI_Finalize;
end
