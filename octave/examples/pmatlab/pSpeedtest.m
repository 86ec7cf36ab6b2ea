## Speedtest: messages of growing length between pairs of ranks, there and back; each is checked.
longest = 2 ^ 14;
trials = 3;
partner = bitxor (Pid, 1);
if (partner < Np)
  k = 0;
  for n = 2 .^ (0:2:log2 (longest))
    seconds = Inf;
    for trial = 1:trials
      tag = mod (k++, 32);
      tic;
      SendMsg (partner, tag, Pid + (1:n));
      got = RecvMsg (partner, tag);
      seconds = min (seconds, toc);
      assert (got, partner + (1:n));
    end
    if (Pid == 0)
      printf ("%8d bytes %10.6f s %10.1f MB/s\n", 8 * n, seconds, 16 * n / seconds / 1e6);
    end
  end
end
if (Pid == 0)
  disp ("Speedtest: SUCCESS");
end
