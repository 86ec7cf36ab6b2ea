% The Mandelbrot set of SIZE x SIZE points, in columns that are dealt to the ranks in turn: `mandelbrot.m SIZE FILE`.
%
% Rank 0 gathers the columns, writes the picture into FILE as bytes (column by column), and prints: mandelbrot SIZE
% SECONDS.

1; % a script, though functions come first

function counts = steps_inside (points, mine)
  [x, y] = meshgrid (linspace (-2, 0.6, points)(mine), linspace (-1.3, 1.3, points));
  c = complex (x, y);
  z = zeros (points, numel (mine));
  counts = zeros (points, numel (mine), "uint8");
  inside = true (points, numel (mine));
  for step = 1:60
    z(inside) = z(inside) .^ 2 + c(inside);
    inside = inside & abs (z) <= 2;
    counts += uint8 (inside);
  end
end

arguments = argv ();
points = str2double (arguments{1});
rank = limosa_rank ();
ranks = limosa_size ();
limosa_barrier ();
start = tic;
mine = rank + 1 : ranks : points;
parts = limosa_gather (steps_inside (points, mine), 0);
if (rank == 0)
  picture = zeros (points, points, "uint8");
  for part = 1:ranks
    picture(:, part:ranks:points) = parts{part};
  end
  seconds = toc (start);
  % The set is symmetric; the real axis lies between two rows or on one.
  if (! isequal (picture, flipud (picture)))
    error ("limosa:damaged", "the picture is not symmetric");
  end
  file = fopen (arguments{2}, "w");
  fwrite (file, picture);
  fclose (file);
  printf ("mandelbrot %d %.3e\n", points, seconds);
end
