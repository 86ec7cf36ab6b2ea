## seconds = PingPong ([times [, bytes [, mode]]])
##
## Two processes send an array to and fro, and each adds 1 to all of it. Mode "s": blocking calls; "r": the receive is
## posted before the send. Returns the mean time of half a round trip. The sum of the array is checked.

function seconds = PingPong (times = 100, bytes = 1024, mode = "s")
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  if size != 2
    error ("limosa:arg", "PingPong: needs 2 processes, there are %d", size);
  end
  if ! any (mode == "sr")
    error ("limosa:arg", "PingPong: the mode is 's' or 'r'");
  end
  other = 1 - rank;
  array = zeros (1, max (1, fix (bytes / 8)));
  MPI_Barrier (world);
  start = MPI_Wtime;
  for i = 1:times
    if mode == "r"
      incoming = array;
      [info, request] = MPI_Irecv (incoming, other, 1, world);
    end
    if rank == 0
      array += 1;
      MPI_Send (array, other, 1, world);
    end
    if mode == "r"
      MPI_Wait (request);
      array = incoming;
    else
      MPI_Recv (array, other, 1, world);
    end
    if rank == 1
      array += 1;
      MPI_Send (array, other, 1, world);
    end
  end
  seconds = (MPI_Wtime - start) / times / 2;
  if sum (array) != 2 * times * numel (array)
    error ("limosa:damaged", "PingPong: the sum is %g", sum (array));
  end
  if rank == 0
    printf ("%d bytes: %.2f us\n", 8 * numel (array), seconds * 1e6);
  end
  MPI_Finalize;
end
