## Stream: how fast the ranks read and write their memory. All of it is local; agg is used as a barrier.
N = 2 ^ 16;
trials = 5;
mapX = map ([1 Np], {}, 0:Np-1);
A = 1 + zeros (1, N, mapX);
B = 2 + zeros (1, N, mapX);
C = zeros (1, N, mapX);
q = 3;
a = local (A);
b = local (B);
c = local (C);
seconds = Inf (1, 4);
for k = 1:trials
  agg (zeros (1, Np, mapX));
  tic; c = a;         seconds(1) = min (seconds(1), toc);
  tic; b = q * c;     seconds(2) = min (seconds(2), toc);
  tic; c = a + b;     seconds(3) = min (seconds(3), toc);
  tic; a = b + q * c; seconds(4) = min (seconds(4), toc);
end
A = put_local (A, a);
B = put_local (B, b);
C = put_local (C, c);
expected = (q + q * (1 + q)) ^ trials;
worst = [max(abs(A - expected)), max(abs(B - q * expected / (q + q * (1 + q)))), ...
         max(abs(C - (1 + q) * expected / (q + q * (1 + q))))];
rate = gagg (8 * N / Np * [2 2 3 3] ./ max (seconds, 1e-9) / 1e6);
if (Pid == 0)
  assert (all (worst <= 1e-12 * expected));
  names = {"copy", "scale", "add", "triad"};
  for k = 1:4
    printf ("%-6s %10.0f MB/s\n", names{k}, rate(k));
  end
  disp ("Stream: SUCCESS");
end
