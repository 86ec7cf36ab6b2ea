## A picture to transform: smooth hills with an edge and a fine pattern, n-by-n.

function image = wave_image (n)
  [x, y] = meshgrid ((0:n-1) / n);
  image = 100 + 60 * sin (5 * x) .* cos (7 * y) + 40 * (x + y > 1) + 5 * mod (fix (n * x) + fix (n * y), 3);
end
