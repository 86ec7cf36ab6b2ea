% Programs with distributed arrays, after pMatlab's examples: `--dialect pmatlab arrays.m BENCH SAMPLES SIZES...` on all
% ranks, where BENCH is stream, hpl, fft or agg. kernels/arrays/beside_octave.py has the same programs in Python, with
% the same numbers.
%
% Rank 0 prints a line for each size: `SERIES SIZE =CHECK SECONDS...`. The check is a number that the result gives, the
% same in both languages. Each program also verifies its result.

1; % a script, though functions come first

% The time that all ranks need for something, and what it returns.
function [seconds, varargout] = timed (call, varargin)
  limosa_barrier ();
  start = tic;
  [varargout{1:nargout-1}] = call (varargin{:});
  limosa_barrier ();
  seconds = toc (start);
end

function want (is_right, what)
  if (! is_right)
    error ("limosa:damaged", "%s: the result is wrong", what);
  end
end

% STREAM's scale, add and triad: three vectors, of which nothing is communicated. `c = a` would copy nothing.
function [a, b, c] = loops (a, b, c)
  b = 3 * c;
  c = a + b;
  a = b + 3 * c;
end

function [seconds, check] = stream (n, samples)
  vector = map ([1 Np], {}, 0:Np-1);
  A = zeros (1, n, vector);
  a = local (A) + 1;
  b = a + 1;
  c = a;
  expected = [1 2 1];
  for k = 1:samples + 1
    [seconds(k), a, b, c] = timed (@loops, a, b, c);
    expected(2) = 3 * expected(3);
    expected(3) = sum (expected(1:2));
    expected(1) = expected(2) + 3 * expected(3);
  end
  same = @(x, value) all (abs (x - value) <= 1e-12 * value);
  want (same (a, expected(1)) && same (b, expected(2)) && same (c, expected(3)), "stream");
  A = put_local (A, a);
  check = sum (A) / n;
end

% HPL: the LU factors of a matrix of which the blocks of columns are dealt in turn.
function [mine, order] = decompose (mine, at, block)
  n = rows (mine);
  order = 1:n;
  for first = 1:block:n
    last = min (first + block - 1, n);
    width = last - first + 1;
    owner = mod ((first - 1) / block, Np);
    panel = [];
    if (Pid == owner)
      here = at >= first & at <= last;
      [L, U, p] = lu (mine(first:n, here), "vector");
      L(1:width,:) += U - eye (width);
      panel = {L, p};
    end
    panel = limosa_bcast (panel, owner);
    [L, p] = panel{:};
    mine(first:n,:) = mine(first - 1 + p,:);
    order(first:n) = order(first - 1 + p);
    if (Pid == owner)
      mine(first:n, here) = L;
    end
    behind = at > last;
    unit = tril (L(1:width,:), -1) + eye (width);
    mine(first:last, behind) = unit \ mine(first:last, behind);
    mine(last+1:n, behind) -= L(width+1:end,:) * mine(first:last, behind);
  end
end

function [seconds, check] = hpl (n, samples)
  block = 48;
  spec.dist = 'bc';
  spec.b_size = block;
  columns = map ([1 Np], spec, 0:Np-1);
  A = uniform (n, n, columns, 1) - 0.5;
  b = agg_all (uniform (n, 1, map ([Np 1], {}, 0:Np-1), 2)) - 0.5;
  at = global_ind (A, 2);
  for k = 1:samples + 1
    [seconds(k), mine, order] = timed (@decompose, local (A), at, block);
  end
  whole = agg_all (A);
  factors = agg_all (put_local (A, mine));
  x = triu (factors) \ ((tril (factors, -1) + eye (n)) \ b(order));
  scale = eps * (norm (whole, Inf) * norm (x, Inf) + norm (b, Inf)) * n;
  want (norm (whole * x - b, Inf) < 16 * scale, "hpl");
  check = norm (x);
end

% FFT of a long vector, as a matrix: along the columns, factors, and along the rows, to which it is dealt anew.
function X = transform (X)
  [n, m] = size (X);
  X = put_local (X, fft (local (X), [], 1));
  [p, q] = global_ind (X);
  X = put_local (X, local (X) .* exp (-2i * pi / (n * m) * (p' - 1) * (q - 1)));
  X = transpose_grid (X);
  X = put_local (X, fft (local (X), [], 2));
end

function [seconds, check] = fourier (n, samples)
  m = 2 ^ floor (log2 (n) / 2);
  columns = map ([1 Np], {}, 0:Np-1);
  X = uniform (m, n / m, columns, 1) + 1i * uniform (m, n / m, columns, 2);
  for k = 1:samples + 1
    [seconds(k), Y] = timed (@transform, X);
  end
  x = agg (X);
  y = agg (Y);
  check = 0;
  if (Pid == 0)
    % Element j1, j2 of the matrix is number m2 * j1 + j2 of the vector; k1, k2 of its transform is k1 + m * k2.
    want (norm (y(:) - fft (x.'(:))) <= 1e-12 * norm (y(:)), "fft");
    check = norm (y(:)) + abs (y(2));
  end
end

function [seconds, check] = gather (bytes, samples, call)
  n = round (sqrt (bytes / 8));
  X = uniform (n, n, map ([1 Np], {}, 0:Np-1), 1);
  for k = 1:samples + 1
    whole = [];
    [seconds(k), whole] = timed (call, X);
  end
  check = 0;
  if (Pid == 0)
    want (isequal (size (whole), [n, n]), "agg");
    check = sum (whole(:)) / n ^ 2;
  end
end

function whole = gathered_values (X)
  whole = [];
  parts = limosa_gather (local (X), 0);
  if (Pid == 0)
    whole = horzcat (parts{:});
  end
end

arguments = argv ();
samples = str2double (arguments{2});
for bytes = cellfun (@str2double, arguments(3:end)')
  measured = {};
  switch (arguments{1})
    case "stream"
      [measured{1:2}] = stream (bytes, samples);
    case "hpl"
      [measured{1:2}] = hpl (bytes, samples);
    case "fft"
      [measured{1:2}] = fourier (bytes, samples);
    case "agg"
      [measured{1:2}] = gather (bytes, samples, @agg);
      [measured{3:4}] = gather (bytes, samples, @gathered_values);
  end
  if (Pid == 0)
    names = {"pmatlab", "modern"};
    for k = 1:numel (measured) / 2
      [seconds, check] = measured{2*k-1:2*k};
      printf ("%s %d =%.12g%s\n", names{k}, bytes, check, sprintf (" %.3e", seconds(2:end))); % the first one warms up
    end
  end
end
