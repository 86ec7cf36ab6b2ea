## dmat: a distributed array.
##
## Made by the constructors of a map (zeros (M, N, map) ...); X = dmat (shape, map, part) is their common end. A program
## uses it as an ordinary array. Each rank has its part, X.local; operators and functions work on these parts, and move
## elements only where they must. A function that moves elements is collective: all ranks call it, in the same order.
##
## Fields for programs: X.local (this rank's part, can be assigned), X.map, X.size, X.dim, X.grid.
##
## Here are the functions that treat each element on its own. The other ones have a file each.
classdef dmat
  properties
    shape  # the sizes of the whole array, as many as the map has dimensions
    map
    part   # what this rank stores, overlap included; 0-by-0 without a cell in the map
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
    function r = isreal (X), r = isreal (X.part); endfunction
    function r = iscomplex (X), r = iscomplex (X.part); endfunction
    function r = issparse (X), r = issparse (X.part); endfunction
    function r = isnumeric (X), r = isnumeric (X.part); endfunction
    function r = islogical (X), r = islogical (X.part); endfunction
    function r = isfloat (X), r = isfloat (X.part); endfunction
    function r = ismatrix (X), r = true; endfunction
    function r = isvector (X), r = numel (X.shape) == 2 && any (X.shape == 1) && all (X.shape >= 1); endfunction
    function r = isscalar (X), r = all (X.shape == 1); endfunction
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

    function Z = eq (X, Y)
      ## With different maps: a plain false.
      if (isa (X, "dmat") && isa (Y, "dmat") && isequal (X.shape, Y.shape) && ! eq (X.map, Y.map))
        Z = false;
      else
        Z = combine (@eq, X, Y, "eq");
      endif
    endfunction

    function Z = ne (X, Y)
      if (isa (X, "dmat") && isa (Y, "dmat") && isequal (X.shape, Y.shape) && ! eq (X.map, Y.map))
        Z = true;
      else
        Z = combine (@ne, X, Y, "ne");
      endif
    endfunction

    ## --- along a dimension -------------------------------------------------------------------------------------------
    ## Functions that make one element of each line (see pm_along.m).

    function Y = sum (X, d = []), Y = pm_along (X, d, @sum, @plus); endfunction
    function Y = prod (X, d = []), Y = pm_along (X, d, @prod, @times); endfunction
    function Y = sumsq (X, d = []), Y = pm_along (X, d, @sumsq, @plus); endfunction
    function Y = any (X, d = []), Y = pm_along (X, d, @any, @or); endfunction
    function Y = all (X, d = []), Y = pm_along (X, d, @all, @and); endfunction

    function Y = mean (X, d = [])
      d = pm_dimension (X, d);
      Y = sum (X, d) ./ X.shape(d);
    endfunction

    function Y = var (X, opt = 0, d = [])
      ## The mean of the squared distances from the mean; divided by n - 1, or with opt = 1 by n.
      d = pm_dimension (X, d);
      n = X.shape(d);
      apart = abs (minus (X, pm_spread (mean (X, d), X, d)));
      Y = sum (times (apart, apart), d) ./ max (n - (opt != 1), 1);
    endfunction

    function Y = std (X, varargin), Y = sqrt (var (X, varargin{:})); endfunction

    function Y = dot (A, B, d = [])
      Y = sum (times (conj (A), B), d);
    endfunction

    function [Y, places] = max (X, Z = [], d = [])
      if (! isempty (Z))
        Y = combine (@max, X, Z, "max");
      elseif (nargout < 2)
        Y = pm_along (X, d, @(part, d) max (part, [], d), @max);
      else
        [Y, places] = pm_extreme (X, d, @max, @gt);
      endif
    endfunction

    function [Y, places] = min (X, Z = [], d = [])
      if (! isempty (Z))
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

    function Y = sort (X, varargin)
      d = [varargin{cellfun(@isnumeric, varargin)}];
      mode = varargin(cellfun (@ischar, varargin));
      Y = pm_whole (X, d, "sort", @(part, d) sort (part, d, mode{:}));
    endfunction
  endmethods
endclassdef
