% Ping-pong and broadcast with MPITB's functions: `--dialect mpitb mpitb.m pingpong|bcast SAMPLES BYTES...`. What it
% prints is said in modern.m. Values are received into a variable that is there already.

1; % a script, though functions come first

function seconds = bounce (x, world, rank)
  trips = max (2, min (500, ceil (2e7 / max (8 * numel (x), 1))));
  y = zeros (size (x));
  start = tic;
  for trip = 1:trips
    if (rank == 0)
      MPI_Send (x, 1, 1, world);
      MPI_Recv (y, 1, 1, world);
    else
      MPI_Recv (y, 0, 1, world);
      MPI_Send (y, 0, 1, world);
    end
  end
  seconds = toc (start) / 2 / trips;
  if (rank == 0 && ! isequal (x, y))
    error ("limosa:damaged", "what came back is not what was sent");
  end
end

function seconds = spread (x, world)
  trips = 20;
  start = tic;
  for trip = 1:trips
    MPI_Bcast (x, 0, world);
    MPI_Barrier (world);
  end
  seconds = toc (start) / trips;
end

MPI_Init;
world = MPI_COMM_WORLD;
[info, rank] = MPI_Comm_rank (world);
arguments = argv ();
samples = str2double (arguments{2});
for bytes = cellfun (@str2double, arguments(3:end)')
  x = rand (1, bytes / 8);
  seconds = zeros (1, samples);
  for sample = 0:samples
    MPI_Barrier (world);
    if (strcmp (arguments{1}, "pingpong"))
      taken = bounce (x, world, rank);
    else
      taken = spread (x, world);
    end
    if (sample > 0)
      seconds(sample) = taken;
    end
  end
  if (rank == 0)
    printf ("%s %d%s\n", arguments{1}, bytes, sprintf (" %.3e", seconds));
  end
end
MPI_Finalize;
