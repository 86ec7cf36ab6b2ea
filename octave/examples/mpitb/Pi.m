## result = Pi ([n [, mode]])
##
## Pi by the midpoint rule with n intervals, which the processes share. Mode "s": each sends its part to process 0;
## "r": a reduction adds the parts. The result is there on process 0, 0 elsewhere.

function result = Pi (n = 1e6, mode = "r")
  MPI_Init;
  [info, rank] = MPI_Comm_rank (MPI_COMM_WORLD);
  [info, size] = MPI_Comm_size (MPI_COMM_WORLD);
  tag = 7;
  part = pi_part (n, rank, size);
  result = 0;
  switch mode
    case "s"
      if rank > 0
        MPI_Send (part, 0, tag, MPI_COMM_WORLD);
      else
        result = part;
        for source = 1:size-1
          MPI_Recv (part, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD);
          result += part;
        end
      end
    case "r"
      MPI_Reduce (part, result, MPI_SUM, 0, MPI_COMM_WORLD);
    otherwise
      error ("limosa:arg", "Pi: the mode is 's' or 'r'");
  end
  if rank == 0
    printf ("pi is %.15f, the error %g\n", result, result - pi);
    if abs (result - pi) > 5e-10
      warning ("Pi:inexact", "Pi: the error is %g", result - pi);
    end
  end
  MPI_Finalize;
end
