## HPL: solves A x = b by LU factorisation with pivoting. Blocks of columns are dealt in turn. The owner of a block
## factorises it and sends it to all others, which update their columns with it.
VERIFY = 1;
N = 48;
B = 4;
spec.dist = 'bc';
spec.b_size = B;
A = zeros (N, N, map ([1 Np], spec, 0:Np-1));
whole = mod ((1:N)' * (1:N) .^ 2, 101) / 101 + eye (N);
A(:,:) = whole;
b = (1:N)';
mine = local (A);
at = global_ind (A, 2);
order = 1:N;
pMATLAB.comm = MatMPI_Save_messages (pMATLAB.comm, 0);
for first = 1:B:N
  block = first:min (first + B - 1, N);
  owner = mod ((first - 1) / B, Np);
  tag = mod ((first - 1) / B, 32);
  if (Pid == owner)
    here = find (at >= block(1) & at <= block(end));
    [L, U, p] = lu (mine(first:N, here), "vector");
    panel = L;
    panel(1:numel (block),:) += U - eye (numel (block));
    for rank = [0:owner-1, owner+1:Np-1]
      SendMsg (rank, tag, panel, p);
    end
  else
    [panel, p] = RecvMsg (owner, tag);
  end
  ## The rows in their new order, in all columns; then the update of the columns behind the block.
  mine(first:N,:) = mine(first - 1 + p,:);
  order(first:N) = order(first - 1 + p);
  n = numel (block);
  if (Pid == owner)
    mine(first:N, here) = panel;
  end
  behind = at > block(end);
  unit = tril (panel(1:n,:), -1) + eye (n);
  mine(block, behind) = unit \ mine(block, behind);
  mine(block(end)+1:N, behind) -= panel(n+1:end,:) * mine(block, behind);
end
A = put_local (A, mine);
LU = agg (A);
if (Pid == 0)
  L = tril (LU, -1) + eye (N);
  U = triu (LU);
  x = U \ (L \ b(order));
  if (VERIFY)
    residual = norm (whole * x - b, Inf) / (eps * (norm (whole, Inf) * norm (x, Inf) + norm (b, Inf)) * N);
    assert (residual < 16);
  end
  disp ("HPL: SUCCESS");
end
