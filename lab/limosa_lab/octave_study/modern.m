% Ping-pong and broadcast with Limosa's functions: `modern.m pingpong|bcast SAMPLES BYTES...` on all ranks.
%
% Rank 0 prints a line for each length: BENCH BYTES, then the seconds of each sample. A sample of a ping-pong is half a
% round trip, one of a broadcast the time until all ranks have it.

1; % a script, though functions come first

function trips = trips_of (bytes)
  trips = max (2, min (500, ceil (2e7 / max (bytes, 1))));
end

function seconds = bounce (x)
  trips = trips_of (8 * numel (x));
  rank = limosa_rank ();
  start = tic;
  for trip = 1:trips
    if (rank == 0)
      limosa_send (x, 1);
      y = limosa_recv (1);
    else
      limosa_send (limosa_recv (0), 0);
    end
  end
  seconds = toc (start) / 2 / trips;
  if (rank == 0 && ! isequal (x, y))
    error ("limosa:damaged", "what came back is not what was sent");
  end
end

function seconds = spread (x)
  trips = 20;
  wanted = x;
  if (limosa_rank () > 0)
    x = [];
  end
  start = tic;
  for trip = 1:trips
    got = limosa_bcast (x, 0);
    limosa_barrier ();
  end
  seconds = toc (start) / trips;
  if (! isequal (size (got), size (wanted)))
    error ("limosa:damaged", "a rank has not got what was sent");
  end
end

arguments = argv ();
samples = str2double (arguments{2});
for bytes = cellfun (@str2double, arguments(3:end)')
  x = rand (1, bytes / 8);
  seconds = zeros (1, samples);
  for sample = 0:samples
    limosa_barrier ();
    if (strcmp (arguments{1}, "pingpong"))
      taken = bounce (x);
    else
      taken = spread (x);
    end
    if (sample > 0) % the first one warms up
      seconds(sample) = taken;
    end
  end
  if (limosa_rank () == 0)
    printf ("%s %d%s\n", arguments{1}, bytes, sprintf (" %.3e", seconds));
  end
end
