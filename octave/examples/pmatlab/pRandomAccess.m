## RandomAccess: updates X(i) = xor (X(i), v) at random places of a distributed table. Each rank makes some of the
## updates and sends them to the owners, in log2 (Np) rounds: in each, half of what a rank has goes to a partner. Doing
## all of them twice gives the first table again.
bits = 10;
N = 2 ^ bits;
updates = 400;  # of each rank
rounds = nextpow2 (Np);

if (Np != 2 ^ rounds)
  if (Pid == 0)
    disp ("RandomAccess: SUCCESS (not run: it needs 1, 2, 4, ... ranks)");
  end
  return;
end
X = zeros (1, N, map ([1 Np], {}, 0:Np-1));
range = global_block_range (X, 2);
table = uint32 (range(1):range(2));
for again = 1:2
  state = 12345 + 99991 * Pid;
  todo = zeros (1, updates, "uint32");
  for k = 1:updates
    state = mod (state * 16807, 2147483647);
    todo(k) = state;
  end
  for k = 0:rounds-1
    partner = bitxor (Pid, 2 ^ k);
    owner = floor (double (bitand (todo, N - 1)) / (N / Np));
    away = bitand (owner, 2 ^ k) != bitand (Pid, 2 ^ k);
    tag = mod (2 * k + again, 32);
    SendMsg (partner, tag, todo(away));
    todo = [todo(! away), RecvMsg(partner, tag)];
  end
  at = double (bitand (todo, N - 1)) + 2 - range(1);
  for k = 1:numel (todo)
    table(at(k)) = bitxor (table(at(k)), todo(k));
  end
  if (again == 1)
    changed = gagg_all (sum (table != uint32 (range(1):range(2))));
  end
end
wrong = gagg (sum (table != uint32 (range(1):range(2))));
if (Pid == 0)
  assert (changed > N / 10);
  assert (wrong, 0);
  disp ("RandomAccess: SUCCESS");
end
