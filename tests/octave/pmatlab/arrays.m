## What users write with distributed arrays: constructors, operators, subscripts, global indices, overlaps, files. The
## same statements with ordinary arrays say what must come out. Run on any number of ranks.
1;

function same (X, expected, tolerance = 0)
  found = agg_all (X);
  [a, b] = deal (double (found), double (expected));
  if (! isequal (size (a), size (b)) || ! (isequal (a, b) || all (abs (a(:) - b(:)) <= tolerance)))
    error ("%s is not %s", mat2str (found, 4), mat2str (expected, 4));
  endif
endfunction

function fails (f, text)
  try
    f ();
  catch e
    assert (! isempty (strfind (e.message, text)), "the message is: %s", e.message);
    return;
  end_try_catch
  error ("no error; expected: %s", text);
endfunction

everybody = 0:Np-1;
byrows = map ([Np 1], {}, everybody);
bycolumns = map ([1 Np], "c", everybody);
backwards = map ([Np 1], struct ("dist", "bc", "b_size", 2), fliplr (everybody));
last = map ([1 1], {}, Np - 1);
W = reshape (1:35, 7, 5) - 12;

## --- constructors ----------------------------------------------------------------------------------------------------
for m = {byrows, bycolumns, backwards, last}
  m = m{1};
  same (zeros (7, 5, m), zeros (7, 5));
  same (ones ([7 5], m), ones (7, 5));
  same (zeros (4, m), zeros (4));
  same (zeros (3, 4, m, "int16"), zeros (3, 4, "int16"));
  same (eye (4, m), eye (4));
  same (linspace (0, 1, 9, map ([1 Np], {}, everybody)), linspace (0, 1, 9));
  same (repmat ([1 2; 3 4], 2, 3, m), repmat ([1 2; 3 4], 2, 3));
  same (Inf (2, 3, m), Inf (2, 3));
  X = rand (7, 5, m);
  assert (all (all (X >= 0)) && all (all (X < 1)) && isequal (size (X), [7 5]));
  assert (isequal (size (randn (7, 5, m)), [7 5]));
  S = sparse (7, 5, m);
  assert (issparse (local (S)));
  S(2,3) = 4;
  same (S, full (sparse (2, 3, 4, 7, 5)));
  V = full (local (sparse (2, 3, 4, 7, 5)));
  assert (isequal (S, V) && nnz (S) == 1 && trace (S(1:5,:)) == 0);
  same (S(2:7,:) - S(1:6,:), V(2:7,:) - V(1:6,:));
  same (S(:), V(:));
  same (spalloc (7, 5, 10, m), zeros (7, 5));

  ## --- operators -----------------------------------------------------------------------------------------------------
  X = zeros (7, 5, m);
  X(:,:) = W;
  same (-X, -W);
  same (X / 4, W / 4);
  same (4 \ X, W / 4);
  same (2 * X - X .* X + 1 ./ (X .^ 2 + 1), 2 * W - W .* W + 1 ./ (W .^ 2 + 1), 1e-12);
  same (X + W, 2 * W);
  same (W - X, 0 * W);
  same (X .* (1:5), W .* (1:5));
  same (X .^ 2, W .^ 2);
  for f = {@lt, @le, @ge, @gt, @eq, @ne, @and, @or, @xor}
    same (f{1}(X, 3), f{1}(W, 3));
    same (f{1}(3, X), f{1}(3, W));
    same (f{1}(X, X), f{1}(W, W));
  endfor
  same (! X, ! W);
  same (mod (X, 4), mod (W, 4));
  same (rem (X, 4), rem (W, 4));
  same (max (X, 2), max (W, 2));
  same (X > local (X), false (7, 5));
  for name = {"abs", "sign", "exp", "sin", "atan", "fix", "real", "imag", "conj", "isnan", "cosd", "sech", "sqrt"}
    same (feval (name{1}, X), feval (name{1}, W), 1e-12);
  endfor
  assert (class (local (int8 (X))), "int8");
  assert (class (local (double (single (X)))), "double");
  assert (isreal (X) && ! isempty (X) && numel (X) == 35 && ndims (X) == 2 && rows (X) == 7);
  [r, c] = size (X);
  assert ([r c size(X, 2)], [7 5 5]);

  ## --- reductions ----------------------------------------------------------------------------------------------------
  for f = {@sum, @prod, @any, @all, @mean, @cumsum, @cumprod, @sumsq}
    warning ("off", "pMatlab:remap");
    same (f{1}(X), f{1}(W), 1e-6);
    same (f{1}(X, 2), f{1}(W, 2), 1e-6);
  endfor
  same (max (X), max (W));
  same (min (X, [], 2), min (W, [], 2));
  [~, k] = max (mod (X, 5), [], 2);
  [~, expected] = max (mod (W, 5), [], 2);
  same (k, expected);
  same (std (X), std (W), 1e-12);
  assert (sum (sum (X)), sum (W(:)));
  assert (norm (X, "fro"), norm (W, "fro"), 1e-10);
  assert (norm (X), norm (W), 1e-10);
  assert (norm (X, 1), norm (W, 1));
  assert (norm (X, Inf), norm (W, Inf));
  same (dot (X, X), dot (W, W));

  ## --- matrices ------------------------------------------------------------------------------------------------------
  same (X * W', W * W');
  same (W' * X, W' * W);
  same (X * X', W * W');
  same (X', W');
  assert (eq ((X.').map, m));
  same (fft (X), fft (W), 1e-10);
  same (ifft (fft (X, [], 2), [], 2), W, 1e-10);
  same (idct (dct (X)), W, 1e-10);
  same (sort (X, 2, "descend"), sort (W, 2, "descend"));
  same ([X, X], [W, W]);
  same ([X; W], [W; W]);
  same (permute (X, [2 1]), W');
  A = W(1:5,:) + 50 * eye (5);
  B = zeros (5, 5, m);
  B(:,:) = A;
  same (X / A, W / A, 1e-10);
  same (A \ X', A \ W', 1e-10);
  same (B ^ 3, A ^ 3, 1e-3);
  [q, r] = qr (B);
  same (q * r, A, 1e-10);
  same (conv2 (X, 1, "same"), W);

  ## --- subscripts ----------------------------------------------------------------------------------------------------
  X(:) = W(:,:);
  V = W;
  X(3,2) = 99;           V(3,2) = 99;
  X(end,:) = 5;          V(end,:) = 5;
  X(1:4,2:3) = 7;        V(1:4,2:3) = 7;
  X(2:6,[1 4]) = W(1:5,1:2);  V(2:6,[1 4]) = W(1:5,1:2);
  X(7,:) = 1:5;          V(7,:) = 1:5;
  X(:,5) = (1:7)';       V(:,5) = (1:7)';
  same (X, V);
  same (X(3,:), V(3,:));
  same (X(:,4), V(:,4));
  same (X(7,5), V(7,5));
  same (X(:,:), V);
  X(X > 6) = -1;         V(V > 6) = -1;
  same (X, V);
  X.local(:) = 3;
  same (X, 3 * ones (7, 5));
  X(:,:) = 1i;
  same (X, 1i * ones (7, 5));
  Y = zeros (7, 5, m);
  Y(:,:) = fft (X);
  same (Y, fft (1i * ones (7, 5)), 1e-12);
  X = put_local (X, local (X) * 2);
  same (X, 2i * ones (7, 5));
  fails (@() X(8,1), "7 5");
  fails (@() X(1,2,3), "3 subscripts");
  [i, j] = find (W > 20);
  X(:,:) = W;
  [a, b] = find (X > 20);
  if (inmap (m, Pid))
    assert (sortrows ([a b]), sortrows ([i j]));
  endif

  ## --- between maps, with every other one ----------------------------------------------------------------------------
  for other = {byrows, bycolumns, backwards, last}
    Y = zeros (7, 5, other{1});
    Y(:,:) = X;
    same (Y, W);
    same (remap (X, other{1}), W);
    same (summation (Y, X, X), 2 * W);
    same (X + Y, 2 * W);
    same (X == Y, true (7, 5));
  endfor

  ## --- global indices ------------------------------------------------------------------------------------------------
  [i, j] = global_ind (X);
  assert (isequal (local (X), W(i,j)) || isempty (local (X)));
  assert (i, global_ind (X, 1));
  table = global_inds (X, 1);
  if (inmap (m, Pid))
    assert (table(table(:,1) == Pid, 2:1+numel (i))(:), i(:));
  endif
  range = global_range (X, 1);
  inside = [];
  for k = 1:2:numel (range)
    inside = [inside, range(k):range(k+1)];
  endfor
  assert (inside(:), i(:));
  assert (rows (global_ranges (X, 2)), numel (m.grid));
  block = global_block_range (X, 1);
  assert (isempty (i) && isempty (block) || isequal (block, [i(1) i(end)]));
  assert (columns (global_block_ranges (X, 1)) <= 3);
endfor
assert (global_ind (W, 1), 1:7);
assert (global_block_ranges (W, 2), [0 1 5]);
assert (agg (W), W);
assert (local (W), W);
assert (put_local (W, 3), 3);
same (transpose_grid (X), W);

## --- overlaps --------------------------------------------------------------------------------------------------------
halo = map ([Np 1], {}, everybody, [1 0]);
H = zeros (12, 3, halo);
H(:,:) = (1:12)' * (1:3);
H.local *= 1 + Pid;  # every copy of an element is different now
i = global_ind (H, 1);
factors = 1 + floor ((0:11) / ceil (12 / Np));
expected = (factors .* (1:12))' * (1:3);
T = synch (H);
assert (isempty (i) || isequal (local (T), expected(i,:)));
same (T, expected);
both = synch2 (H);
sums = factors;
border = [false, diff(factors) > 0];
sums(border) += factors(border) - 1;
expected = (sums .* (1:12))' * (1:3);
assert (isempty (i) || isequal (local (both), expected(i,:)));
same (sum (H), sum ((factors .* (1:12))' * (1:3)));

## --- several ranks, ordinary values ----------------------------------------------------------------------------------
total = gagg (Pid + [1 2]);
if (Pid == 0)
  assert (total, sum (everybody) + Np * [1 2]);
endif
assert (gagg_all (Pid, 0, "max"), Np - 1);
assert (gagg_all (single (Pid), 0, "min"), single (0));
got = multicast (Np - 1, everybody, {Pid, "text"});
assert (got, {Np - 1, "text"});
fails (@() gagg_all (int8 (1)), "int8");

## --- three and four dimensions ---------------------------------------------------------------------------------------
C = reshape (1:48, 4, 3, 2, 2);
F = zeros (4, 3, 2, 2, map ([1 Np 1 1], {}, everybody));
F(:,:,:,:) = C;
same (F, C);
same (sum (F, 2), sum (C, 2));
G = zeros (4, 3, 2, 2, map ([1 1 1 Np], {}, everybody));
G(:,:,:,:) = F;
same (G, C);
same (reshape (G, [12 2 2]), reshape (C, [12 2 2]));
D = zeros (4, 3, 2, map ([1 1 Np], {}, everybody));
D(:,:,:) = C(:,:,:,1);
same (fft (D, [], 3), fft (C(:,:,:,1), [], 3), 1e-12);
same (D(:,:,2), C(:,:,2,1));

## --- errors say what is wrong ----------------------------------------------------------------------------------------
fails (@() map ([1 1], "x", 0), "'x' is no distribution");
fails (@() map ([Np 1], {}, 0:Np), "cells");
fails (@() map ([1 1], {}, Np), "there is no rank");
fails (@() map ([Np 1], "c", everybody, [1 0]), "needs blocks");
fails (@() map ([Np 1], struct ("dist", "bc"), everybody), "b_size");
fails (@() zeros (3, 4, 5, byrows), "2 dimensions");
X = ones (7, 5, byrows);
fails (@() X + ones (3, 5), "[7 5]");
fails (@() X * ones (7, 2), "do not fit");
fails (@() X + ones (7, 4, byrows), "different sizes");
fails (@() sparse (1, 1, 1, byrows), "must be empty");
fails (@() X.nothing, "no field 'nothing'");
fails (@() subsasgn (X, substruct ("()", {":", ":"}), ones (2)), "[2 2]");

## --- files and display -----------------------------------------------------------------------------------------------
for cls = {"double", "int16"}
  for m = {byrows, map([1 Np], {}, everybody)}
    X = zeros (7, 5, m{1}, cls{1});
    X(:,:) = cast (W, cls{1});
    save_dmat (X, "whole.bin");
    if (Pid == 0)
      file = fopen ("whole.bin");
      assert (fread (file, [7 5], cls{1}), W);
      assert (ftell (file), 35 * sizeof (cast (0, cls{1})));
      fclose (file);
    endif
    gagg (0);
  endfor
endfor
shown = W(1:2,1:2);
Z = zeros (2, 2, byrows);
Z(:,:) = shown;
Z
if (Pid == 0)
  disp ("arrays: all right");
endif

## --- patternmatch ----------------------------------------------------------------------------------------------------
pattern = [1 4 2 0 3];
for m = {byrows, bycolumns, backwards, last}
  X = zeros (7, 5, m{1});
  X(:,:) = W;
  same (patternmatch (X, pattern), sum ((W - pattern) .^ 2, 2) / 5, 1e-12);
  fails (@() patternmatch (X, 1:4), "as many elements as D has columns (5), not [1 4]");
  fails (@() patternmatch (X, X), "an ordinary vector");
endfor
assert (patternmatch (W, pattern'), sum ((W - pattern) .^ 2, 2) / 5, 1e-12);
