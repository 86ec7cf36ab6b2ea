## How many steps points of the complex plane take to leave the circle of radius 2, at most `limit`: the columns with
## these numbers (0-based) of an n-by-n picture of -2 .. 0.5, -1.25i .. 1.25i.

function steps = mandel_columns (columns, n, limit)
  [x, y] = meshgrid (-2 + 2.5 * columns / (n - 1), -1.25 + 2.5 * (0:n-1) / (n - 1));
  c = x + 1i * y;
  z = zeros (size (c));
  steps = zeros (size (c));
  for k = 1:limit
    inside = abs (z) <= 2;
    if ! any (inside(:))
      break
    end
    z(inside) = z(inside) .^ 2 + c(inside);
    steps += inside;
  end
end
