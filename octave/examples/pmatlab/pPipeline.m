## Pipeline: the first half of the ranks makes data, the second half works on them. The arrays of the two halves have
## different ranks in their maps; an assignment between them is the pipe.
half = max (floor (Np / 2), 1);
makers = map ([1 half], {}, 0:half-1);
workers = map ([Np - min(half, Np - 1), 1], {}, min (half, Np - 1):Np-1);
M = 16;
N = 10;
kernel = ones (3, 1) / 3;
for step = 1:4
  raw = zeros (M, N, makers);
  if (inmap (makers, Pid))
    [i, j] = global_ind (raw);
    raw = put_local (raw, step * i' + j);
  end
  ready = zeros (M, N, workers);
  ready(:,:) = raw;  # all ranks take part
  ready = ready * 2 + 1;
  [i, j] = find (abs (ready) > 2 * (step * M + N));
  if (inmap (workers, Pid))
    assert ([i, j], [M, N]);
  end
  whole = agg_all (ready);
  assert (whole, 2 * (step * (1:M)' + (1:N)) + 1);
end
if (Pid == 0)
  disp ("Pipeline: SUCCESS");
end
