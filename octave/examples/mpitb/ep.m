## [ok, sx, sy] = ep ([class])
##
## The kernel EP of the NAS parallel benchmarks: pairs of uniform pseudo-random numbers, those in the unit circle made
## normal, sums and counts of them. The generator is x <- 5^13 x mod 2^46 from 271828183 on; classes S, W, A, B and C
## have 2^24, 2^25, 2^28, 2^30 and 2^32 pairs. ok says whether the sums are the benchmark's, on every process.

function [ok, sx, sy] = ep (class = "S")
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  [m, wanted] = problem (class);
  bits = 16;                                    # a batch has 2^16 pairs
  numbers = 2 ^ (bits + 1);
  batches = 2 ^ (m - bits);
  a = 5 ^ 13;
  stride = power (a, numbers * size);           # from a batch of this process to its next one
  seed = times (power (a, numbers * rank), 271828183);
  powers = generate (a, numbers);
  sums = zeros (1, 12);                         # sx, sy, ten counts
  start = MPI_Wtime;
  for batch = rank:size:batches-1
    x = times (powers, seed);
    sums += tally (2 * reshape (x, 2, []) * 2 ^ -46 - 1);
    seed = times (stride, seed);
  end
  total = zeros (1, 12);
  MPI_Allreduce (sums, total, MPI_SUM, world);
  sx = total(1);
  sy = total(2);
  ok = all (abs (([sx, sy] - wanted) ./ wanted) <= 1e-8);
  if rank == 0
    printf ("EP class %s: %.2f s, sums %.15e %.15e, %d pairs: %s\n", class, MPI_Wtime - start, sx, sy, ...
            sum (total(3:end)), {"UNSUCCESSFUL", "SUCCESSFUL"}{1 + ok});
  end
  MPI_Finalize;
end

function [m, wanted] = problem (class)
  table = {"S", 24, [-3.247834652034740e3, -6.958407078382297e3];
           "W", 25, [-2.863319731645753e3, -6.320053679109499e3];
           "A", 28, [-4.295875165629892e3, -1.580732573678431e4];
           "B", 30, [4.033815542441498e4, -2.660669192809235e4];
           "C", 32, [4.764367927995374e4, -8.084072988043731e4]};
  row = find (strcmp (table(:,1), class));
  if isempty (row)
    error ("limosa:arg", "ep: the class is S, W, A, B or C");
  end
  [m, wanted] = table{row,2:3};
end

## a * b mod 2^46, exactly: the factors are cut into halves of 23 bits.
function c = times (a, b)
  half = 2 ^ 23;
  a1 = floor (a / half);
  a0 = a - half * a1;
  b1 = floor (b / half);
  b0 = b - half * b1;
  c = mod (half * mod (a1 .* b0 + a0 .* b1, half) + a0 .* b0, 2 ^ 46);
end

## a^n mod 2^46.
function c = power (a, n)
  c = 1;
  while n > 0
    if mod (n, 2)
      c = times (c, a);
    end
    a = times (a, a);
    n = floor (n / 2);
  end
end

## a, a^2, ... a^n: each step doubles how many there are.
function all = generate (a, n)
  all = a;
  while numel (all) < n
    all = [all, times(all, all(end))];
  end
  all = all(1:n);
end

## Sums of the normal numbers, and how many pairs have their larger one in [k, k+1).
function sums = tally (pairs)
  t = sum (pairs .^ 2);
  pairs = pairs(:,t <= 1);
  t = t(t <= 1);
  normal = pairs .* sqrt (-2 * log (t) ./ t);
  sums = [sum(normal, 2).', histc(floor (max (abs (normal))), 0:9)];
end
