## dmat: a distributed array.
##
## Made by the constructors of a map (zeros (M, N, map) ...); X = dmat (shape, map, part) is their common end. A program
## uses it as an ordinary array. Each rank has its part, X.local; operators and functions work on these parts, and move
## elements only where they must. A function that moves elements is collective: all ranks call it, in the same order.
##
## Fields for programs: X.local (this rank's part, can be assigned), X.map, X.size, X.dim, X.grid.
##
## A function gives what Octave gives for the whole array, or an error. A function of Octave that looks at the object
## itself would see one element; such functions are here, even if all they do is to collect the array.
##
## Here are the functions of a few lines. The other ones have a file each.
classdef dmat
  properties
    shape  # the sizes of the whole array, as many as the map has dimensions
    map
    part   # what this rank stores, overlap included; 0-by-0 without a cell in the map
    chosen = []  # not empty: a range of another array, whose elements are still where they were (see pm_pick)
  endproperties

  methods
    function X = dmat (shape, m, part)
      if (numel (shape) != m.dim)
        error ("pMatlab:shape", "the map has %d dimensions (grid %s), but the array %s has %d", m.dim, ...
               pm_text (cells (m)), pm_text (shape), numel (shape));
      endif
      X.shape = shape(:)';
      X.map = m;
      X.part = part;
    endfunction

    ## --- what the array is -------------------------------------------------------------------------------------------

    function varargout = size (X, d)
      if (nargin == 2)
        varargout = {[X.shape, ones(1, max (d) - numel (X.shape))](d)};
      elseif (nargout < 2)
        varargout = {X.shape};
      else
        sizes = [X.shape, ones(1, nargout)];
        varargout = num2cell (sizes(1:nargout));
        varargout{end} = prod (sizes(nargout:end));
      endif
    endfunction

    function n = ndims (X), n = numel (X.shape); endfunction
    function n = length (X), n = max (X.shape) * all (X.shape > 0); endfunction
    function n = rows (X), n = X.shape(1); endfunction
    function n = columns (X), n = X.shape(2); endfunction
    function r = isempty (X), r = any (X.shape == 0); endfunction
    ## Octave makes complex numbers real where it can, on each rank for itself.
    function r = isreal (X), r = ! pm_agree (iscomplex (X.part)); endfunction
    function r = iscomplex (X), r = pm_agree (iscomplex (X.part)); endfunction
    function r = issparse (X), r = issparse (X.part); endfunction
    function r = isnumeric (X), r = isnumeric (X.part); endfunction
    function r = islogical (X), r = islogical (X.part); endfunction
    function r = isbool (X), r = islogical (X.part); endfunction
    function r = isinteger (X), r = isinteger (X.part); endfunction
    function r = isfloat (X), r = isfloat (X.part); endfunction
    function r = ismatrix (X), r = true; endfunction
    function r = isvector (X), r = numel (X.shape) == 2 && any (X.shape == 1) && all (X.shape >= 1); endfunction
    function r = isscalar (X), r = all (X.shape == 1); endfunction
    function r = isrow (X), r = numel (X.shape) == 2 && X.shape(1) == 1; endfunction
    function r = iscolumn (X), r = numel (X.shape) == 2 && X.shape(2) == 1; endfunction
    function r = size_equal (varargin)
      r = all (cellfun (@(X) isequal (size (X), size (varargin{1})), varargin));
    endfunction
    function r = issquare (X), r = numel (X.shape) == 2 && X.shape(1) == X.shape(2); endfunction
    function n = end (X, k, n)
      if (k < n)
        n = X.shape(k);
      else
        n = prod (X.shape(k:end));
      endif
    endfunction
    function g = grid (X), g = X.map.grid; endfunction
    function L = local (X), L = X.part; endfunction
    function X = put_local (X, L), X.part = L; endfunction

    ## --- one operand -------------------------------------------------------------------------------------------------

    ## classes
    function Y = single (X), Y = X; Y.part = single (X.part); endfunction
    function Y = double (X), Y = X; Y.part = double (X.part); endfunction
    function Y = int8 (X), Y = X; Y.part = int8 (X.part); endfunction
    function Y = int16 (X), Y = X; Y.part = int16 (X.part); endfunction
    function Y = int32 (X), Y = X; Y.part = int32 (X.part); endfunction
    function Y = int64 (X), Y = X; Y.part = int64 (X.part); endfunction
    function Y = uint8 (X), Y = X; Y.part = uint8 (X.part); endfunction
    function Y = uint16 (X), Y = X; Y.part = uint16 (X.part); endfunction
    function Y = uint32 (X), Y = X; Y.part = uint32 (X.part); endfunction
    function Y = uint64 (X), Y = X; Y.part = uint64 (X.part); endfunction
    function Y = logical (X), Y = X; Y.part = logical (X.part); endfunction
    function Y = sparse (X), Y = X; Y.part = sparse (X.part); endfunction
    function Y = cast (X, name), Y = X; Y.part = cast (X.part, name); endfunction
    function Y = full (X), Y = X; Y.part = full (X.part); endfunction

    ## complex numbers
    function Y = real (X), Y = X; Y.part = real (X.part); endfunction
    function Y = imag (X), Y = X; Y.part = imag (X.part); endfunction
    function Y = conj (X), Y = X; Y.part = conj (X.part); endfunction
    function Y = abs (X), Y = X; Y.part = abs (X.part); endfunction
    function Y = angle (X), Y = X; Y.part = angle (X.part); endfunction
    function Y = arg (X), Y = X; Y.part = arg (X.part); endfunction

    ## rounding, sign
    function Y = ceil (X), Y = X; Y.part = ceil (X.part); endfunction
    function Y = fix (X), Y = X; Y.part = fix (X.part); endfunction
    function Y = floor (X), Y = X; Y.part = floor (X.part); endfunction
    function Y = round (X), Y = X; Y.part = round (X.part); endfunction
    function Y = sign (X), Y = X; Y.part = sign (X.part); endfunction

    ## exponents, logarithms
    function Y = exp (X), Y = X; Y.part = exp (X.part); endfunction
    function Y = expm1 (X), Y = X; Y.part = expm1 (X.part); endfunction
    function Y = log (X), Y = X; Y.part = log (X.part); endfunction
    function Y = log10 (X), Y = X; Y.part = log10 (X.part); endfunction
    function Y = log1p (X), Y = X; Y.part = log1p (X.part); endfunction
    function Y = log2 (X), Y = X; Y.part = log2 (X.part); endfunction
    function Y = sqrt (X), Y = X; Y.part = sqrt (X.part); endfunction
    function Y = cbrt (X), Y = X; Y.part = cbrt (X.part); endfunction
    function Y = reallog (X), Y = X; Y.part = reallog (X.part); endfunction
    function Y = realsqrt (X), Y = X; Y.part = realsqrt (X.part); endfunction
    function Y = gamma (X), Y = X; Y.part = gamma (X.part); endfunction
    function Y = lgamma (X), Y = X; Y.part = lgamma (X.part); endfunction
    function Y = factorial (X), Y = X; Y.part = factorial (X.part); endfunction
    function Y = erf (X), Y = X; Y.part = erf (X.part); endfunction
    function Y = gammaln (X), Y = lgamma (X); endfunction
    function Y = psi (X), Y = X; Y.part = psi (X.part); endfunction
    function Y = erfinv (X), Y = X; Y.part = erfinv (X.part); endfunction
    function Y = erfcinv (X), Y = X; Y.part = erfcinv (X.part); endfunction
    function Y = erfi (X), Y = X; Y.part = erfi (X.part); endfunction
    function Y = dawson (X), Y = X; Y.part = dawson (X.part); endfunction
    function Y = erfcx (X), Y = X; Y.part = erfcx (X.part); endfunction
    function Y = eps (X), Y = X; Y.part = eps (X.part); endfunction
    function Y = erfc (X), Y = X; Y.part = erfc (X.part); endfunction

    ## trigonometry
    function Y = sin (X), Y = X; Y.part = sin (X.part); endfunction
    function Y = cos (X), Y = X; Y.part = cos (X.part); endfunction
    function Y = tan (X), Y = X; Y.part = tan (X.part); endfunction
    function Y = sec (X), Y = X; Y.part = sec (X.part); endfunction
    function Y = csc (X), Y = X; Y.part = csc (X.part); endfunction
    function Y = cot (X), Y = X; Y.part = cot (X.part); endfunction
    function Y = asin (X), Y = X; Y.part = asin (X.part); endfunction
    function Y = acos (X), Y = X; Y.part = acos (X.part); endfunction
    function Y = atan (X), Y = X; Y.part = atan (X.part); endfunction
    function Y = asec (X), Y = X; Y.part = asec (X.part); endfunction
    function Y = acsc (X), Y = X; Y.part = acsc (X.part); endfunction
    function Y = acot (X), Y = X; Y.part = acot (X.part); endfunction
    function Y = sinh (X), Y = X; Y.part = sinh (X.part); endfunction
    function Y = cosh (X), Y = X; Y.part = cosh (X.part); endfunction
    function Y = tanh (X), Y = X; Y.part = tanh (X.part); endfunction
    function Y = sech (X), Y = X; Y.part = sech (X.part); endfunction
    function Y = csch (X), Y = X; Y.part = csch (X.part); endfunction
    function Y = coth (X), Y = X; Y.part = coth (X.part); endfunction
    function Y = asinh (X), Y = X; Y.part = asinh (X.part); endfunction
    function Y = acosh (X), Y = X; Y.part = acosh (X.part); endfunction
    function Y = atanh (X), Y = X; Y.part = atanh (X.part); endfunction
    function Y = asech (X), Y = X; Y.part = asech (X.part); endfunction
    function Y = acsch (X), Y = X; Y.part = acsch (X.part); endfunction
    function Y = acoth (X), Y = X; Y.part = acoth (X.part); endfunction
    function Y = sind (X), Y = X; Y.part = sind (X.part); endfunction
    function Y = cosd (X), Y = X; Y.part = cosd (X.part); endfunction
    function Y = tand (X), Y = X; Y.part = tand (X.part); endfunction
    function Y = secd (X), Y = X; Y.part = secd (X.part); endfunction
    function Y = cscd (X), Y = X; Y.part = cscd (X.part); endfunction
    function Y = cotd (X), Y = X; Y.part = cotd (X.part); endfunction
    function Y = asind (X), Y = X; Y.part = asind (X.part); endfunction
    function Y = acosd (X), Y = X; Y.part = acosd (X.part); endfunction
    function Y = atand (X), Y = X; Y.part = atand (X.part); endfunction
    function Y = asecd (X), Y = X; Y.part = asecd (X.part); endfunction
    function Y = acscd (X), Y = X; Y.part = acscd (X.part); endfunction
    function Y = acotd (X), Y = X; Y.part = acotd (X.part); endfunction
    function Y = deg2rad (X), Y = X; Y.part = deg2rad (X.part); endfunction
    function Y = rad2deg (X), Y = X; Y.part = rad2deg (X.part); endfunction

    ## predicates, signs, negation
    function Y = isna (X), Y = X; Y.part = isna (X.part); endfunction
    function Y = signbit (X), Y = X; Y.part = signbit (X.part); endfunction
    function Y = isnan (X), Y = X; Y.part = isnan (X.part); endfunction
    function Y = isinf (X), Y = X; Y.part = isinf (X.part); endfunction
    function Y = isfinite (X), Y = X; Y.part = isfinite (X.part); endfunction
    function Y = not (X), Y = X; Y.part = not (X.part); endfunction
    function Y = uminus (X), Y = X; Y.part = uminus (X.part); endfunction
    function Y = uplus (X), Y = X; Y.part = uplus (X.part); endfunction

    function Y = complex (X, I)
      if (nargin == 1)
        Y = X;
        Y.part = complex (X.part);
      else
        Y = combine (@complex, X, I, "complex");
      endif
    endfunction

    function Y = pow2 (X), Y = X; Y.part = pow2 (X.part); endfunction

    ## --- two operands ------------------------------------------------------------------------------------------------

    function Z = plus (X, Y), Z = combine (@plus, X, Y, "plus"); endfunction
    function Z = minus (X, Y), Z = combine (@minus, X, Y, "minus"); endfunction
    function Z = times (X, Y), Z = combine (@times, X, Y, "times"); endfunction
    function Z = rdivide (X, Y), Z = combine (@rdivide, X, Y, "rdivide"); endfunction
    function Z = ldivide (X, Y), Z = combine (@ldivide, X, Y, "ldivide"); endfunction
    function Z = power (X, Y), Z = combine (@power, X, Y, "power"); endfunction
    function Z = realpow (X, Y), Z = combine (@realpow, X, Y, "realpow"); endfunction
    function Z = atan2 (X, Y), Z = combine (@atan2, X, Y, "atan2"); endfunction
    function Z = hypot (X, Y), Z = combine (@hypot, X, Y, "hypot"); endfunction
    function Z = mod (X, Y), Z = combine (@mod, X, Y, "mod"); endfunction
    function Z = rem (X, Y), Z = combine (@rem, X, Y, "rem"); endfunction
    function Z = idivide (X, Y), Z = combine (@idivide, X, Y, "idivide"); endfunction
    function Z = and (X, Y), Z = combine (@and, X, Y, "and"); endfunction
    function Z = or (X, Y), Z = combine (@or, X, Y, "or"); endfunction
    function Z = xor (X, Y), Z = combine (@xor, X, Y, "xor"); endfunction
    function Z = bitand (X, Y), Z = combine (@bitand, X, Y, "bitand"); endfunction
    function Z = bitor (X, Y), Z = combine (@bitor, X, Y, "bitor"); endfunction
    function Z = bitxor (X, Y), Z = combine (@bitxor, X, Y, "bitxor"); endfunction

    ## A plain operand of these may also have the size of the local part.
    function Z = lt (X, Y), Z = combine (@lt, X, Y, "lt", true); endfunction
    function Z = le (X, Y), Z = combine (@le, X, Y, "le", true); endfunction
    function Z = ge (X, Y), Z = combine (@ge, X, Y, "ge", true); endfunction
    function Z = gt (X, Y), Z = combine (@gt, X, Y, "gt", true); endfunction

    function Z = eq (X, Y), Z = combine (@eq, X, Y, "eq"); endfunction
    function Z = ne (X, Y), Z = combine (@ne, X, Y, "ne"); endfunction
    function Z = gcd (X, Y), Z = combine (@gcd, X, Y, "gcd"); endfunction
    function Z = lcm (X, Y), Z = combine (@lcm, X, Y, "lcm"); endfunction
    function Z = nthroot (X, Y), Z = combine (@nthroot, X, Y, "nthroot"); endfunction
    function Z = bitshift (X, Y), Z = combine (@bitshift, X, Y, "bitshift"); endfunction
    function Z = beta (X, Y), Z = combine (@beta, X, Y, "beta"); endfunction
    function Z = bsxfun (f, X, Y), Z = combine (f, X, Y, "bsxfun"); endfunction

    ## --- along a dimension -------------------------------------------------------------------------------------------
    ## Functions that make one element of each line (see pm_along.m).

    function Y = sum (X, d = []), Y = pm_along (X, d, @sum, @plus); endfunction
    function Y = prod (X, d = []), Y = pm_along (X, d, @prod, @times); endfunction
    function Y = sumsq (X, d = []), Y = pm_along (X, d, @sumsq, @plus); endfunction
    function Y = any (X, d = []), Y = pm_along (X, d, @any, @or); endfunction
    function Y = all (X, d = []), Y = pm_along (X, d, @all, @and); endfunction

    function Y = mean (X, d = [])
      if (! isfloat (X))
        X = double (X);
      endif
      d = pm_dimension (X, d);
      Y = sum (X, d) ./ X.shape(d);
    endfunction

    function Y = var (X, opt = 0, d = [])
      ## The mean of the squared distances from the mean; divided by n - 1, or with opt = 1 by n.
      if (isempty (opt))
        opt = 0;
      elseif (! (isequal (opt, 0) || isequal (opt, 1)))
        error ("pMatlab:arguments", "var: of a distributed array the second argument is 0, 1 or []; hint: agg_all (X)");
      endif
      if (! isfloat (X))
        X = double (X);
      endif
      X = pm_complete (X);
      d = pm_dimension (X, d);
      n = X.shape(d);
      apart = abs (minus (X, pm_spread (mean (X, d), X, d)));
      Y = sum (times (apart, apart), d) ./ max (n - (opt != 1), 1);
    endfunction

    function Y = std (X, varargin), Y = sqrt (var (X, varargin{:})); endfunction

    function Y = dot (A, B, d = [])
      if (isvector (A) && isvector (B) && numel (A) == numel (B) && isempty (d))
        A = reshape (A, [numel(A) 1]);
        B = reshape (B, [numel(B) 1]);
      elseif (! (ndims (A) == ndims (B) && all (size (A) == size (B))))
        error ("pMatlab:shape", "dot: the operands have different sizes: %s and %s", pm_text (size (A)), ...
               pm_text (size (B)));
      endif
      Y = sum (times (conj (A), B), d);
    endfunction

    function [Y, places] = max (X, Z = [], d = [])
      if (! isempty (Z) && ! isempty (d))
        error ("pMatlab:arguments", "max: either two arrays, or one array and a dimension: max (X, [], d)");
      elseif (! isempty (Z))
        Y = combine (@max, X, Z, "max");
      elseif (nargout < 2)
        Y = pm_along (X, d, @(part, d) max (part, [], d), @max);
      else
        [Y, places] = pm_extreme (X, d, @max, @gt);
      endif
    endfunction

    function [Y, places] = min (X, Z = [], d = [])
      if (! isempty (Z) && ! isempty (d))
        error ("pMatlab:arguments", "min: either two arrays, or one array and a dimension: min (X, [], d)");
      elseif (! isempty (Z))
        Y = combine (@min, X, Z, "min");
      elseif (nargout < 2)
        Y = pm_along (X, d, @(part, d) min (part, [], d), @min);
      else
        [Y, places] = pm_extreme (X, d, @min, @lt);
      endif
    endfunction

    ## Functions that need a whole line (see pm_whole.m).

    function Y = fft (X, n = [], d = []), Y = pm_whole (X, d, "fft", @(part, d) fft (part, n, d)); endfunction
    function Y = ifft (X, n = [], d = []), Y = pm_whole (X, d, "ifft", @(part, d) ifft (part, n, d)); endfunction
    function Y = dct (X, n = [], d = []), Y = pm_whole (X, d, "dct", @(part, d) pm_dct (part, n, d)); endfunction
    function Y = idct (X, n = [], d = []), Y = pm_whole (X, d, "idct", @(p, d) pm_dct (p, n, d, "inverse")); endfunction
    function Y = cumsum (X, d = []), Y = pm_whole (X, d, "cumsum", @cumsum); endfunction
    function Y = cumprod (X, d = []), Y = pm_whole (X, d, "cumprod", @cumprod); endfunction
    function Y = flip (X, d = []), Y = pm_whole (X, d, "flip", @flip); endfunction
    function Y = flipud (X), Y = flip (X, 1); endfunction
    function Y = fliplr (X), Y = flip (X, 2); endfunction
    function Y = diff (X, k = 1, d = []), Y = pm_whole (X, d, "diff", @(part, d) diff (part, k, d)); endfunction

    function Y = fft2 (X), Y = fft (fft (X, [], 1), [], 2); endfunction
    function Y = ifft2 (X), Y = ifft (ifft (X, [], 1), [], 2); endfunction
    function Y = cummax (X, d = []), Y = pm_whole (X, d, "cummax", @cummax); endfunction
    function Y = cummin (X, d = []), Y = pm_whole (X, d, "cummin", @cummin); endfunction
    function Y = median (X, d = []), Y = pm_number (pm_whole (X, d, "median", @median)); endfunction
    function Y = mode (X, d = []), Y = pm_number (pm_whole (X, d, "mode", @mode)); endfunction

    function [Y, places] = sort (X, varargin)
      d = [varargin{cellfun(@isnumeric, varargin)}];
      mode = varargin(cellfun (@ischar, varargin));
      Y = pm_whole (X, d, "sort", @(part, d) sort (part, d, mode{:}));
      if (nargout > 1)
        places = pm_whole (X, d, "sort", @(part, d) nthargout (2, @sort, part, d, mode{:}));
      endif
    endfunction

    ## --- of all elements ---------------------------------------------------------------------------------------------

    function n = nnz (X), n = pm_sum (nnz (pm_own (X))); endfunction
    function n = nzmax (X), n = pm_sum (nzmax (pm_own (X))); endfunction
    function Y = tril (X, k = 0), Y = pm_band (X, @(i, j) j - i <= k); endfunction
    function Y = triu (X, k = 0), Y = pm_band (X, @(i, j) j - i >= k); endfunction

    function n = trace (X)
      if (! issquare (X))
        error ("pMatlab:shape", "trace: the matrix is %s, and must be square", pm_text (X.shape));
      endif
      n = pm_total (@sum, pm_band (X, @(i, j) i == j));
    endfunction

    ## --- of the collected array --------------------------------------------------------------------------------------
    ## All ranks have the whole array for a moment. An array that comes out is dealt by the same map.

    function varargout = airy (varargin), varargout = pm_dealt ("airy", varargin, nargout); endfunction
    function varargout = balance (varargin), varargout = pm_dealt ("balance", varargin, nargout); endfunction
    function varargout = besselh (varargin), varargout = pm_dealt ("besselh", varargin, nargout); endfunction
    function varargout = besseli (varargin), varargout = pm_dealt ("besseli", varargin, nargout); endfunction
    function varargout = besselj (varargin), varargout = pm_dealt ("besselj", varargin, nargout); endfunction
    function varargout = besselk (varargin), varargout = pm_dealt ("besselk", varargin, nargout); endfunction
    function varargout = bessely (varargin), varargout = pm_dealt ("bessely", varargin, nargout); endfunction
    function varargout = betainc (varargin), varargout = pm_dealt ("betainc", varargin, nargout); endfunction
    function varargout = bincoeff (varargin), varargout = pm_dealt ("bincoeff", varargin, nargout); endfunction
    function varargout = bitcmp (varargin), varargout = pm_dealt ("bitcmp", varargin, nargout); endfunction
    function varargout = bitget (varargin), varargout = pm_dealt ("bitget", varargin, nargout); endfunction
    function varargout = bitset (varargin), varargout = pm_dealt ("bitset", varargin, nargout); endfunction
    function varargout = blkdiag (varargin), varargout = pm_dealt ("blkdiag", varargin, nargout); endfunction
    function varargout = bounds (varargin), varargout = pm_dealt ("bounds", varargin, nargout); endfunction
    function varargout = center (varargin), varargout = pm_dealt ("center", varargin, nargout); endfunction
    function varargout = chol (varargin), varargout = pm_dealt ("chol", varargin, nargout); endfunction
    function varargout = circshift (varargin), varargout = pm_dealt ("circshift", varargin, nargout); endfunction
    function varargout = compan (varargin), varargout = pm_dealt ("compan", varargin, nargout); endfunction
    function varargout = conv (varargin), varargout = pm_dealt ("conv", varargin, nargout); endfunction
    function varargout = convn (varargin), varargout = pm_dealt ("convn", varargin, nargout); endfunction
    function varargout = corr (varargin), varargout = pm_dealt ("corr", varargin, nargout); endfunction
    function varargout = corrcoef (varargin), varargout = pm_dealt ("corrcoef", varargin, nargout); endfunction
    function varargout = cov (varargin), varargout = pm_dealt ("cov", varargin, nargout); endfunction
    function varargout = cumtrapz (varargin), varargout = pm_dealt ("cumtrapz", varargin, nargout); endfunction
    function varargout = deconv (varargin), varargout = pm_dealt ("deconv", varargin, nargout); endfunction
    function varargout = del2 (varargin), varargout = pm_dealt ("del2", varargin, nargout); endfunction
    function varargout = detrend (varargin), varargout = pm_dealt ("detrend", varargin, nargout); endfunction
    function varargout = diag (varargin), varargout = pm_dealt ("diag", varargin, nargout); endfunction
    function varargout = ellipke (varargin), varargout = pm_dealt ("ellipke", varargin, nargout); endfunction
    function varargout = expint (varargin), varargout = pm_dealt ("expint", varargin, nargout); endfunction
    function varargout = expm (varargin), varargout = pm_dealt ("expm", varargin, nargout); endfunction
    function varargout = fftn (varargin), varargout = pm_dealt ("fftn", varargin, nargout); endfunction
    function varargout = fftshift (varargin), varargout = pm_dealt ("fftshift", varargin, nargout); endfunction
    function varargout = filter (varargin), varargout = pm_dealt ("filter", varargin, nargout); endfunction
    function varargout = filter2 (varargin), varargout = pm_dealt ("filter2", varargin, nargout); endfunction
    function varargout = gammainc (varargin), varargout = pm_dealt ("gammainc", varargin, nargout); endfunction
    function varargout = gradient (varargin), varargout = pm_dealt ("gradient", varargin, nargout); endfunction
    function varargout = hankel (varargin), varargout = pm_dealt ("hankel", varargin, nargout); endfunction
    function varargout = hess (varargin), varargout = pm_dealt ("hess", varargin, nargout); endfunction
    function varargout = histc (varargin), varargout = pm_dealt ("histc", varargin, nargout); endfunction
    function varargout = ifelse (varargin), varargout = pm_dealt ("ifelse", varargin, nargout); endfunction
    function varargout = ifftn (varargin), varargout = pm_dealt ("ifftn", varargin, nargout); endfunction
    function varargout = ifftshift (varargin), varargout = pm_dealt ("ifftshift", varargin, nargout); endfunction
    function varargout = interp1 (varargin), varargout = pm_dealt ("interp1", varargin, nargout); endfunction
    function varargout = inv (varargin), varargout = pm_dealt ("inv", varargin, nargout); endfunction
    function varargout = inverse (varargin), varargout = pm_dealt ("inverse", varargin, nargout); endfunction
    function varargout = ipermute (varargin), varargout = pm_dealt ("ipermute", varargin, nargout); endfunction
    function varargout = iqr (varargin), varargout = pm_dealt ("iqr", varargin, nargout); endfunction
    function varargout = isprime (varargin), varargout = pm_dealt ("isprime", varargin, nargout); endfunction
    function varargout = kron (varargin), varargout = pm_dealt ("kron", varargin, nargout); endfunction
    function varargout = kurtosis (varargin), varargout = pm_dealt ("kurtosis", varargin, nargout); endfunction
    function varargout = logm (varargin), varargout = pm_dealt ("logm", varargin, nargout); endfunction
    function varargout = lu (varargin), varargout = pm_dealt ("lu", varargin, nargout); endfunction
    function varargout = mad (varargin), varargout = pm_dealt ("mad", varargin, nargout); endfunction
    function varargout = meansq (varargin), varargout = pm_dealt ("meansq", varargin, nargout); endfunction
    function varargout = merge (varargin), varargout = pm_dealt ("merge", varargin, nargout); endfunction
    function varargout = nextpow2 (varargin), varargout = pm_dealt ("nextpow2", varargin, nargout); endfunction
    function varargout = normalize (varargin), varargout = pm_dealt ("normalize", varargin, nargout); endfunction
    function varargout = null (varargin), varargout = pm_dealt ("null", varargin, nargout); endfunction
    function varargout = orth (varargin), varargout = pm_dealt ("orth", varargin, nargout); endfunction
    function varargout = pinv (varargin), varargout = pm_dealt ("pinv", varargin, nargout); endfunction
    function varargout = polyval (varargin), varargout = pm_dealt ("polyval", varargin, nargout); endfunction
    function varargout = postpad (varargin), varargout = pm_dealt ("postpad", varargin, nargout); endfunction
    function varargout = prctile (varargin), varargout = pm_dealt ("prctile", varargin, nargout); endfunction
    function varargout = prepad (varargin), varargout = pm_dealt ("prepad", varargin, nargout); endfunction
    function varargout = quantile (varargin), varargout = pm_dealt ("quantile", varargin, nargout); endfunction
    function varargout = range (varargin), varargout = pm_dealt ("range", varargin, nargout); endfunction
    function varargout = repmat (varargin), varargout = pm_dealt ("repmat", varargin, nargout); endfunction
    function varargout = rescale (varargin), varargout = pm_dealt ("rescale", varargin, nargout); endfunction
    function varargout = resize (varargin), varargout = pm_dealt ("resize", varargin, nargout); endfunction
    function varargout = rot90 (varargin), varargout = pm_dealt ("rot90", varargin, nargout); endfunction
    function varargout = rotdim (varargin), varargout = pm_dealt ("rotdim", varargin, nargout); endfunction
    function varargout = schur (varargin), varargout = pm_dealt ("schur", varargin, nargout); endfunction
    function varargout = shiftdim (varargin), varargout = pm_dealt ("shiftdim", varargin, nargout); endfunction
    function varargout = skewness (varargin), varargout = pm_dealt ("skewness", varargin, nargout); endfunction
    function varargout = sortrows (varargin), varargout = pm_dealt ("sortrows", varargin, nargout); endfunction
    function varargout = sqrtm (varargin), varargout = pm_dealt ("sqrtm", varargin, nargout); endfunction
    function varargout = squeeze (varargin), varargout = pm_dealt ("squeeze", varargin, nargout); endfunction
    function varargout = toeplitz (varargin), varargout = pm_dealt ("toeplitz", varargin, nargout); endfunction
    function varargout = trapz (varargin), varargout = pm_dealt ("trapz", varargin, nargout); endfunction
    function varargout = unwrap (varargin), varargout = pm_dealt ("unwrap", varargin, nargout); endfunction
    function varargout = vander (varargin), varargout = pm_dealt ("vander", varargin, nargout); endfunction
    function varargout = vec (varargin), varargout = pm_dealt ("vec", varargin, nargout); endfunction
    function varargout = zscore (varargin), varargout = pm_dealt ("zscore", varargin, nargout); endfunction

    ## What comes out is an ordinary value, on all ranks.

    function varargout = accumarray (varargin), varargout = pm_collected ("accumarray", varargin, nargout); endfunction
    function varargout = accumdim (varargin), varargout = pm_collected ("accumdim", varargin, nargout); endfunction
    function varargout = arrayfun (varargin), varargout = pm_collected ("arrayfun", varargin, nargout); endfunction
    function varargout = base64_encode (varargin)
      varargout = pm_collected ("base64_encode", varargin, nargout);
    endfunction
    function varargout = char (varargin), varargout = pm_collected ("char", varargin, nargout); endfunction
    function varargout = colon (varargin), varargout = pm_collected ("colon", varargin, nargout); endfunction
    function varargout = common_size (varargin)
      varargout = pm_collected ("common_size", varargin, nargout);
    endfunction
    function varargout = cond (varargin), varargout = pm_collected ("cond", varargin, nargout); endfunction
    function varargout = datestr (varargin), varargout = pm_collected ("datestr", varargin, nargout); endfunction
    function varargout = dec2base (varargin), varargout = pm_collected ("dec2base", varargin, nargout); endfunction
    function varargout = dec2bin (varargin), varargout = pm_collected ("dec2bin", varargin, nargout); endfunction
    function varargout = dec2hex (varargin), varargout = pm_collected ("dec2hex", varargin, nargout); endfunction
    function varargout = det (varargin), varargout = pm_collected ("det", varargin, nargout); endfunction
    function varargout = eig (varargin), varargout = pm_collected ("eig", varargin, nargout); endfunction
    function varargout = factor (varargin), varargout = pm_collected ("factor", varargin, nargout); endfunction
    function varargout = hash (varargin), varargout = pm_collected ("hash", varargin, nargout); endfunction
    function varargout = hist (varargin), varargout = pm_collected ("hist", varargin, nargout); endfunction
    function varargout = ind2sub (varargin), varargout = pm_collected ("ind2sub", varargin, nargout); endfunction
    function varargout = int2str (varargin), varargout = pm_collected ("int2str", varargin, nargout); endfunction
    function varargout = interp2 (varargin), varargout = pm_collected ("interp2", varargin, nargout); endfunction
    function varargout = intersect (varargin), varargout = pm_collected ("intersect", varargin, nargout); endfunction
    function varargout = isbanded (varargin), varargout = pm_collected ("isbanded", varargin, nargout); endfunction
    function varargout = isdefinite (varargin), varargout = pm_collected ("isdefinite", varargin, nargout); endfunction
    function varargout = isdiag (varargin), varargout = pm_collected ("isdiag", varargin, nargout); endfunction
    function varargout = isequaln (varargin), varargout = pm_collected ("isequaln", varargin, nargout); endfunction
    function varargout = isequalwithequalnans (varargin)
      varargout = pm_collected ("isequalwithequalnans", varargin, nargout);
    endfunction
    function varargout = ishermitian (varargin)
      varargout = pm_collected ("ishermitian", varargin, nargout);
    endfunction
    function varargout = isindex (varargin), varargout = pm_collected ("isindex", varargin, nargout); endfunction
    function varargout = ismember (varargin), varargout = pm_collected ("ismember", varargin, nargout); endfunction
    function varargout = issorted (varargin), varargout = pm_collected ("issorted", varargin, nargout); endfunction
    function varargout = issymmetric (varargin)
      varargout = pm_collected ("issymmetric", varargin, nargout);
    endfunction
    function varargout = istril (varargin), varargout = pm_collected ("istril", varargin, nargout); endfunction
    function varargout = istriu (varargin), varargout = pm_collected ("istriu", varargin, nargout); endfunction
    function varargout = jsonencode (varargin), varargout = pm_collected ("jsonencode", varargin, nargout); endfunction
    function varargout = linspace (varargin), varargout = pm_collected ("linspace", varargin, nargout); endfunction
    function varargout = lookup (varargin), varargout = pm_collected ("lookup", varargin, nargout); endfunction
    function varargout = mat2cell (varargin), varargout = pm_collected ("mat2cell", varargin, nargout); endfunction
    function varargout = mat2str (varargin), varargout = pm_collected ("mat2str", varargin, nargout); endfunction
    function varargout = nchoosek (varargin), varargout = pm_collected ("nchoosek", varargin, nargout); endfunction
    function varargout = num2cell (varargin), varargout = pm_collected ("num2cell", varargin, nargout); endfunction
    function varargout = num2str (varargin), varargout = pm_collected ("num2str", varargin, nargout); endfunction
    function varargout = perms (varargin), varargout = pm_collected ("perms", varargin, nargout); endfunction
    function varargout = poly (varargin), varargout = pm_collected ("poly", varargin, nargout); endfunction
    function varargout = polyder (varargin), varargout = pm_collected ("polyder", varargin, nargout); endfunction
    function varargout = polyfit (varargin), varargout = pm_collected ("polyfit", varargin, nargout); endfunction
    function varargout = polyint (varargin), varargout = pm_collected ("polyint", varargin, nargout); endfunction
    function varargout = primes (varargin), varargout = pm_collected ("primes", varargin, nargout); endfunction
    function varargout = rank (varargin), varargout = pm_collected ("rank", varargin, nargout); endfunction
    function varargout = rats (varargin), varargout = pm_collected ("rats", varargin, nargout); endfunction
    function varargout = rcond (varargin), varargout = pm_collected ("rcond", varargin, nargout); endfunction
    function varargout = roots (varargin), varargout = pm_collected ("roots", varargin, nargout); endfunction
    function varargout = setdiff (varargin), varargout = pm_collected ("setdiff", varargin, nargout); endfunction
    function varargout = setxor (varargin), varargout = pm_collected ("setxor", varargin, nargout); endfunction
    function varargout = sizeof (varargin), varargout = pm_collected ("sizeof", varargin, nargout); endfunction
    function varargout = sprintf (varargin), varargout = pm_collected ("sprintf", varargin, nargout); endfunction
    function varargout = sub2ind (varargin), varargout = pm_collected ("sub2ind", varargin, nargout); endfunction
    function varargout = svd (varargin), varargout = pm_collected ("svd", varargin, nargout); endfunction
    function varargout = typecast (varargin), varargout = pm_collected ("typecast", varargin, nargout); endfunction
    function varargout = union (varargin), varargout = pm_collected ("union", varargin, nargout); endfunction
    function varargout = unique (varargin), varargout = pm_collected ("unique", varargin, nargout); endfunction

    function assert (varargin)
      args = cellfun (@agg_all, varargin, "UniformOutput", false);
      assert (args{:});
    endfunction
    function printf (varargin)
      args = cellfun (@agg_all, varargin, "UniformOutput", false);
      printf (args{:});
    endfunction
    function fprintf (varargin)
      args = cellfun (@agg_all, varargin, "UniformOutput", false);
      fprintf (args{:});
    endfunction

    ## --- of ordinary arrays only -------------------------------------------------------------------------------------

    function area (varargin), pm_unsupported ("area"); endfunction
    function bar (varargin), pm_unsupported ("bar"); endfunction
    function contour (varargin), pm_unsupported ("contour"); endfunction
    function contourf (varargin), pm_unsupported ("contourf"); endfunction
    function csvwrite (varargin), pm_unsupported ("csvwrite"); endfunction
    function dlmwrite (varargin), pm_unsupported ("dlmwrite"); endfunction
    function errorbar (varargin), pm_unsupported ("errorbar"); endfunction
    function fdisp (varargin), pm_unsupported ("fdisp"); endfunction
    function fputs (varargin), pm_unsupported ("fputs"); endfunction
    function fwrite (varargin), pm_unsupported ("fwrite"); endfunction
    function image (varargin), pm_unsupported ("image"); endfunction
    function imagesc (varargin), pm_unsupported ("imagesc"); endfunction
    function imshow (varargin), pm_unsupported ("imshow"); endfunction
    function line (varargin), pm_unsupported ("line"); endfunction
    function loglog (varargin), pm_unsupported ("loglog"); endfunction
    function mesh (varargin), pm_unsupported ("mesh"); endfunction
    function patch (varargin), pm_unsupported ("patch"); endfunction
    function pie (varargin), pm_unsupported ("pie"); endfunction
    function plot (varargin), pm_unsupported ("plot"); endfunction
    function plot3 (varargin), pm_unsupported ("plot3"); endfunction
    function puts (varargin), pm_unsupported ("puts"); endfunction
    function quiver (varargin), pm_unsupported ("quiver"); endfunction
    function scatter (varargin), pm_unsupported ("scatter"); endfunction
    function semilogx (varargin), pm_unsupported ("semilogx"); endfunction
    function semilogy (varargin), pm_unsupported ("semilogy"); endfunction
    function stairs (varargin), pm_unsupported ("stairs"); endfunction
    function stem (varargin), pm_unsupported ("stem"); endfunction
    function surf (varargin), pm_unsupported ("surf"); endfunction
  endmethods
endclassdef
