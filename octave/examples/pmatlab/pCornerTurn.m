## CornerTurn: a matrix in blocks of columns becomes one in blocks of rows. One assignment does it.
M = 30;
N = 21;
A = zeros (M, N, map ([1 Np], {}, 0:Np-1));
B = zeros (M, N, map ([Np 1], {}, 0:Np-1));
[i, j] = global_ind (A);
A = put_local (A, i' * 1000 + j);
B(:,:) = A;
[i, j] = global_ind (B);
assert (local (B), i' * 1000 + j);
whole = agg (B);
if (Pid == 0)
  assert (whole, (1:M)' * 1000 + (1:N));
  disp ("CornerTurn: SUCCESS");
end
