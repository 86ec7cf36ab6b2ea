## Mandelbrot: each rank has some columns of the plane, dealt in turn, so that all have as much to compute.
N = 200;
rounds = 60;
W = zeros (N, N, map ([1 Np], 'c', 0:Np-1));
[i, j] = global_ind (W);  # which part of the plane is mine
[x, y] = meshgrid (-2 + 3 * (j - 1) / (N - 1), -1.5 + 3 * (i - 1) / (N - 1));
c = x + 1i * y;
z = zeros (size (c));
inside = local (W);
for k = 1:rounds
  z = z .^ 2 + c;
  inside += abs (z) < 2;  # what has left the circle never comes back
end
W = put_local (W, inside);
picture = agg (W);
if (Pid == 0)
  assert (picture, flipud (picture));          # the set is symmetric
  assert (picture(N/2, round (2 / 3 * (N - 1)) + 1), rounds);  # 0 is inside
  assert (picture(1, 1), 0);
  disp ("Mandelbrot: SUCCESS");
end
