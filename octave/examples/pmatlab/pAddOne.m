## AddOne: the smallest program with a distributed array. X is dealt by rows; Y = X + 1 needs no message.
PARALLEL = 1;  # 0: one process, ordinary arrays
N = 100;
mapX = 1;
if (PARALLEL)
  mapX = map ([Np 1], {}, 0:Np-1);
end
X = zeros (N, N, mapX);
X(:,:) = reshape (1:N^2, N, N);
Y = zeros (N, N, mapX);
Y(:,:) = X + 1;
whole = agg (Y);
if (Pid == 0)
  assert (whole, reshape (1:N^2, N, N) + 1);
  disp ("AddOne: SUCCESS");
end
