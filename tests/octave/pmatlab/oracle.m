## The oracle of distributed arrays: the expressions and statements of the tables below give, with every map, what they
## give with ordinary arrays: size, class, elements. Each wrong one is reported. Run on any number of ranks.
1;

## A, B, M: 7-by-5 (M of another map); S: square; r, c: a row and a column; K: complex; I: integers; L: logical.
expressions = {
  ## operators, of one map and of two, with repeated rows, columns and numbers
  "A + B", "A - B .* M", "A ./ (B + 20)", "A .^ 2 - 2 .^ M", "A == B", "A != M", "A < M", "A >= B", ...
  "(A > 0) & (B > 0)", "L | (M > 0)", "! L", "-A", "A'", "K'", "K.'", "2 * A", "A / 4", "4 \\ A", "A * S", ...
  "A' * B", "A * M'", "S ^ 3", "S \\ A'", "A / S", "A - mean (A)", "A - mean (A, 2)", ...
  "A ./ sum (A (:, 1:5) .^ 2, 2)", "A .* (1:5)", "(1:7)' + A", "mean (A) - mean (A, 2)", "r + (1:4)'", ...
  "A(1,:) - A(7,:)", "A(:,1) .* A(:,5)", "A(2,3) * A", "A(2,3) + A(7,1)", "A(:,1) + A(1,:)", "I + I", "I * 2.5", ...
  "I ./ int16 (3)", "max (A, B)", "min (A, 0)", "max (A, mean (A))", "mod (A, 3)", "atan2 (A, M)", "hypot (A, B)", ...
  "bitand (abs (I), 5)", "gcd (I, int16 (6))", "bsxfun (@minus, A, mean (A))", "xor (L, B > 1)", ...
  ## ranges, in all dimensions
  "A(2:7,:) - A(1:6,:)", "A(:,2:5) - A(:,1:4)", "A(2:6,2:4) + A(1:5,3:5)", "A([7 1 3],:)", "A([2 2 5],[1 1])", ...
  "A(end:-1:1,:)", "A(1:2:7,:)'", "A(3:5,:) * A(1,:)'", "A(2:6,:)(2:3,:)", "A(:,3)(2:4)", "A(1:0,:)", ...
  "abs (A(3:6,:))", "sum (A(3:6,:))", "A(2:5,:) == A(2:5,:)", "A(2:5,:) + B(2:5,:)", ...
  "A(logical ([1 0 1 1 0 0 1]),:)", "A(:)", "A(:)'", "A(5)", "A(35)", "A([3 9 20])", "A([1 2; 30 4])", "r([2 5])", ...
  "c(2:end)", "A(A > 0)", "A(L)", "K(2:3,:)", "I(2:6,1)", "A(find (A(:,1) > 0),:)", "A(:,:)", "A(2:4,:)(:)", ...
  "r(:)", "size (A(2:4,:))", "numel (A(2:4,:))", "A(end,end)", "A(end)", ...
  ## what an array is
  "size (A)", "size (A, 2)", "numel (A)", "ndims (A)", "length (A)", "rows (A)", "columns (A)", "isempty (A)", ...
  "isreal (A)", "isreal (K)", "iscomplex (K)", "isreal (K - K)", "isinteger (I)", "islogical (L)", "isbool (L)", ...
  "isfloat (A)", "isnumeric (A)", "isrow (r)", "isrow (A)", "iscolumn (c)", "isvector (c)", "isscalar (A(1,1))", ...
  "issquare (S)", "ismatrix (A)", "size_equal (A, B)", "size_equal (A, S)", "isinteger (sum (I))", ...
  "islogical (any (A))", "isequal (A, A)", "isequal (A, B)", "isequal (A, M)", "isequal (A, A + 0 * M)", ...
  "isequal (A, A, B)", "isequal (1, 1, A)", "isequal ({1}, A(1,1))", "isequal (agg_all (A), A)", ...
  "isequal (A, S)", "isequal (A, \"text\")", "isequal (A(2:3,:), A(2:3,:))", ...
  "issymmetric (S)", "isdiag (S)", ...
  ## along a dimension
  "sum (A)", "sum (A, 2)", "sum (A(:))", "sum (sum (A))", "sum (I)", "prod (A, 2)", "sum (L)", "mean (I)", ...
  "mean (A(:))", "mean (L, 2)", "max (A)", "max (A, [], 2)", "max (A(:))", "min (A(:))", "nthargout (2, @max, A)", ...
  "nthargout (2, @min, A, [], 2)", "any (A)", "all (A, 2)", "any (A(:) > 5)", "all (all (A))", "std (A)", ...
  "var (A, 1)", "var (A, 0, 2)", "var (r)", "var (I)", "median (A)", "median (A, 2)", "median (A(:))", "mode (A)", ...
  "mode (A, 2)", "cumsum (A)", "cumsum (A, 2)", "cumprod (A)", "cummax (A)", "cummin (A, 2)", "sort (A)", ...
  "sort (A, 2, \"descend\")", "nthargout (2, @sort, A)", "nthargout (2, @sort, A, 2, \"descend\")", "sort (I)", ...
  "diff (A)", "diff (A, 2)", "diff (A, 1, 2)", "diff (r)", "trapz (A)", "trapz (A, 2)", "cumtrapz (A)", "fft (A)", ...
  "ifft (K, [], 2)", "fft2 (A)", "dot (A, B)", "dot (r, c)", "sumsq (A)", "flip (A)", "flipud (A)", "fliplr (A)", ...
  "range (A)", "meansq (A)", "fftshift (A)", "circshift (A, 2)", "circshift (A, -1, 2)", "rot90 (A)", ...
  "filter (1, [1 -0.5], A)", "quantile (A)", ...
  ## of all elements, of matrices
  "nnz (A)", "nnz (A > 2)", "trace (S)", "norm (A)", "norm (A, 1)", "norm (c)", "norm (A(:))", ...
  "norm (A - B, \"fro\")", "diag (S)", "diag (r)", "triu (A)", "tril (A, -1)", "triu (S, 1)", "repmat (A, 2, 1)", ...
  "repmat (A, [1 2])", "kron (S, A)", "inv (S)", "det (S)", "rank (S)", "eig (S + S')", "svd (A)", "chol (S * S')", ...
  "expm (S / 50)", "pinv (S)", "cross ([1 2 3], A(1,1:3))", "cross (S(:,1:3), S(:,2:4))", "cov (A)", "corr (A, B)", ...
  "conv2 (A, ones (3), \"same\")", "conv2 (A, [1 2; 3 4], \"same\")", "conv (r, [1 2])", "polyval ([1 2 3], A)", ...
  "interp1 (c, 1:0.5:6)", "polyfit (1:6, r, 1)", "find (A)", "find (A > 2)", "find (r > 3)", ...
  "nthargout (1:2, @find, A > 2)", "nthargout (1:3, @find, A)", "find (A > 0, 3)", "find (A > 0, 2, \"last\")", ...
  "unique (A)", "ismember (A, [1 2 3])", "ismember (3, A)", "reshape (A, 5, 7)", "reshape (A, [], 7)", ...
  "reshape (A, [5 7])", "reshape (A, 35, 1)", "reshape (r, 2, 3)", "permute (A, [2 1])", "[A, B]", "[A; M]", ...
  "[r; r]", "[A(1,:); A(7,:)]", "accumarray ([1; 2; 1; 2; 3; 3], c)", "histc (r, 0:3:9)", ...
  "linspace (0, A(1,1), 3)", "1:r(2)", "arrayfun (@(x) x + 1, A)", "num2str (r)", "mat2str (A)", ...
  "sprintf (\"%g \", A)", "sum (A .* B, 2)(3)", "A(max (r) - 5,:)", "cast (A, \"single\")", "double (I) / 2", ...
  "merge (L, A, M)", "logical (A)", "isnan (A ./ A)", "abs (K)", "real (K .* K)", "single (A) + 1", ...
  "nextpow2 (abs (A) + 1)", "isprime (abs (I))", ...
  ## conditions
  "choose (A)", "choose (A == A)", "choose (A == M)", "choose (A + 100)", "choose (A(2,2) > 0)", ...
  "choose (all (all (A < 100)) && true)", "choose (A != A || false)", "choose (A(1:0,:))", ...
  "choose (A(2:5,:) + 100)", "counted (A)"};

statements = {
  "A(1,1) = A(1,1) + 1;", "A(7,5) = A(1,1);", "A(1,1) += A(7,5);", "A(1,:) = A(2,:);", "A(1,:) = A(7,:);", ...
  "A(:,5) = A(:,1);", "A(2,:) = A(:,3)(1:5)';", "A(2:7,:) = A(1:6,:);", "A(2:4,:) = B(5:7,:);", ...
  "A(2:5,2:3) = M(1:4,4:5);", "A([7 1],:) = A([1 7],:);", "A(3,:) = mean (A);", "A(:,2) = sum (A, 2);", ...
  "A(2:3,:) = A(1,1);", "A(5) = 77;", "A(35) = A(1);", "A([3 9 20]) = [1 2 3];", "A(A > 0) = -1;", ...
  "A(M > 0) = -1;", "A(A > 5) = A(1,1);", "A(L) = 1:sum (L(:));", "r(3) = 8;", "A(1,:) = r(1:5);", "A(:) = 1:35;", ...
  "A(:) = B(:);", "A(:,:) = M;", "A(:,:) = 4;", "A(:) = A(1,1);", "A(2,3) = int16 (4);", "A(2,3) = single (4);", ...
  "L(2,3) = 5;", "A(2,3) = 1i;", "A(logical ([0 1 0 0 0 0 1]),1) = [8 9];", "A(3:4,:) = [1 2 3 4 5; 6 7 8 9 10];", ...
  "A(2:4,:) *= 2;", "A(end,:) = 1:5;", "A([1 1],2) = [8; 9];", "while (any (A(:) > 1)) A = A / 2; endwhile", ...
  "do A = A - 1; until (A(1,1) < 0)", "for k = 2:7 A(k,:) = A(k,:) + A(k-1,:); endfor", ...
  "old = A + 1; while (! isequal (A, old)) old = A; A = floor (A / 2); endwhile"};

## What is an error says so by its name, and what to do.
errors = {
  "plot (A)", "A(8,1)", "A(36)", "A + ones (3, 5)", "A + S", "A * B", "imagesc (A)", "isequal (A{1}, 2)", ...
  "A(1,2,3)", "var (A, [1 2 3 4 5 6 7])"};

function r = choose (X)
  r = 0;
  if (X)
    r = 1;
  endif
endfunction

## `until`, `while` and `!` ask as well.
function n = counted (X)
  n = 0;
  do
    n++;
    X = X - 1;
  until (X < -3 + 0 * X)
  while (! (X > 2))
    n++;
    X = X + 1;
  endwhile
endfunction

## Whether two results are equal; the distributed one is collected.
function r = alike (found, expected)
  if (iscell (expected))
    r = iscell (found) && isequal (size (found), size (expected)) && all (cellfun (@alike, found, expected));
    return;
  endif
  found = agg_all (found);
  r = isequal (size (found), size (expected)) && strcmp (class (found), class (expected));
  if (r && ! isequal (found, expected))
    [a, b] = deal (double (found(:)), double (expected(:)));
    exact = a == b | (isnan (a) & isnan (b));
    tolerance = 1e-9;
    if (isa (expected, "single"))
      tolerance = 1e-5;
    endif
    r = all (exact | abs (a - b) <= tolerance * max ([1; abs(b(isfinite (b)))]));
  endif
endfunction

function complain (what, k, problem)
  printf ("WRONG with map %d: %s: %s\n", k, what, problem);
  fflush (stdout);
endfunction

warning ("off", "all");
names = {"A", "B", "M", "S", "r", "c", "K", "I", "L"};
A = mod ((1:7)' * (3:7), 11) - 4;
S = mod ((1:5)' * (2:6), 7) + 9 * eye (5);
plain = {A, mod(A, 3) + 1, A - (A > 2), S, [3 1 4 1 5 9], [2; 7; 1; 8; 2; 8], A + 1i * mod(A, 4) .* ((1:7)' > 3), ...
         int16(A * 3), A > 1};
everybody = 0:Np-1;
maps = {map([Np 1], {}, everybody), map([1 Np], "c", everybody), ...
        map([Np 1], struct ("dist", "bc", "b_size", 2), fliplr (everybody)), ...
        map([Np 1], {}, everybody, [1 0]), map([1 1], {}, Np - 1)};
if (Np == 1)
  maps = maps([1 4]);
elseif (mod (Np, 2) == 0)
  maps{end+1} = map ([Np/2 2], {}, everybody);
endif

function check (k, names, plain, given, expressions, statements, errors)
  parameters = sprintf ("@(%s) ", strjoin (names, ", "));
  for text = expressions
    f = str2func ([parameters, text{1}]);
    expected = f (plain{:});
    try
      found = f (given{:});
      if (! alike (found, expected))
        complain (text{1}, k, disp (agg_all (found)));
      endif
    catch problem
      complain (text{1}, k, problem.message);
    end_try_catch
  endfor
  for text = statements
    expected = carried_out (text{1}, names, plain);
    try
      found = carried_out (text{1}, names, given);
      ## A statement can change what it names; to collect the others would take longer than the statement.
      for v = find (cellfun (@(name) ! isempty (regexp (text{1}, ['\<', name, '\>'])), names))
        if (! alike (found{v}, expected{v}))
          complain (text{1}, k, [names{v} " = " disp(agg_all (found{v}))]);
        endif
      endfor
    catch problem
      complain (text{1}, k, problem.message);
    end_try_catch
  endfor
  for text = errors
    try
      str2func ([parameters, text{1}]) (given{:});
      complain (text{1}, k, "no error");
    catch problem
      if (! strncmp (problem.identifier, "pMatlab:", 8))
        complain (text{1}, k, problem.message);
      endif
    end_try_catch
  endfor
endfunction

## The variables after a statement.
function values = carried_out (text, names, values)
  [A, B, M, S, r, c, K, I, L] = values{:};
  eval (text);
  values = {A, B, M, S, r, c, K, I, L};
endfunction

for k = 1:numel (maps)
  given = cell (size (plain));
  for v = 1:numel (plain)
    given{v} = remap (plain{v}, maps{k});
  endfor
  given{3} = remap (plain{3}, maps{mod(k, end)+1});
  ## Each map has a third of the rows; with 2, 3 and 4 ranks these are other ones. On one rank all maps are alike.
  step = 3;
  first = mod (k + Np, step) + 1;
  if (Np == 1)
    step = first = 1;
  endif
  check (k, names, plain, given, expressions(first:step:end), statements(first:step:end), errors(first:step:end));
endfor

## Three dimensions.
T = mod (reshape (1:48, 4, 6, 2) * 7, 13) - 5;
three = {"T(:,2:5,:) - U(:,1:4,:)", "T(:)", "sum (T(:))", "T(2,:,1)", "T(:,:,2)", "T(3:4,[6 1],2)", "T(5)", ...
         "T(2,9)", "T(:,:)", "mean (T, 3)", "T - mean (T, 2)", "max (T, [], 2)", "median (T, 2)", ...
         "permute (T, [2 1 3])", ...
         "reshape (T, 8, 6)", "reshape (T, 2, 2, 12)", "isequal (T, U - 1)", "find (T > 3)", "nnz (T)", ...
         "squeeze (T(2,:,:))", "sort (T, 2)", "cumsum (T, 2)", "T(T > 2)", "cat (3, T, U)"};
for m = {map([1 Np 1], {}, everybody), map([Np 1 1], "c", everybody)}
  given = {remap(T, m{1}), remap(T + 1, m{1})};
  check (numel (maps) + 1, {"T", "U"}, {T, T + 1}, given, three, {}, {});
endfor
gagg (0);
if (Pid == 0)
  disp ("oracle: all compared");
endif
