## The test vectors that all languages share (tests/arrays/*.json, made and described by tests/arrays/vectors.py): maps,
## redistributions, and results of operations, for this number of ranks. VECTORS is their folder.
1;

## A map of the files as one of pMatlab: at least two dimensions, ranks columns first, indices from 1.
function [m, shape] = map_of (given, shape)
  grid = given.grid(:)';
  ranks = given.ranks(:);
  if (strcmp (given.order, "C"))
    ranks = permute (reshape (ranks, [fliplr(grid), 1]), [numel(grid):-1:1, numel(grid) + 1])(:);
  endif
  dist = given.dist;
  if (! iscell (dist))
    dist = num2cell (dist);
  endif
  specs = struct ("dist", repmat ({"b"}, 1, numel (grid)), "b_size", []);
  for d = 1:numel (grid)
    if (isnumeric (dist{d}))
      specs(d).dist = "bc";
      specs(d).b_size = dist{d};
    else
      specs(d).dist = dist{d}(1);
    endif
  endfor
  overlap = given.overlap(:)';
  shape = shape(:)';
  if (numel (grid) == 1)
    grid(2) = 1;
    shape(2) = 1;
    overlap(2) = 0;
    specs(2).dist = specs(1).dist;
    specs(2).b_size = specs(1).b_size;
  endif
  if (! any (overlap))
    overlap = [];
  endif
  m = map (grid, specs, ranks, overlap);
endfunction

function cases = read (name, field)
  cases = jsondecode (fileread (fullfile (getenv ("VECTORS"), name))).(field);
  if (! iscell (cases))
    cases = num2cell (cases);
  endif
  if (isfield (cases{1}, "size"))
    cases = cases(cellfun (@(one) one.size == Np, cases));
  endif
endfunction

## Elements listed in C order, as an array.
function A = array_of (given)
  A = given.real(:);
  if (isfield (given, "imag") && ! isempty (given.imag))
    A = complex (A, given.imag(:));
  endif
  shape = given.shape(:)';
  A = permute (reshape (A, [fliplr(shape), 1, 1]), [numel(shape):-1:1, numel(shape) + (1:2)]);
endfunction

## An error unless both have one class, shape and elements. Octave makes complex numbers real where they can be, so this
## is not compared. `assert` takes as long as the operations under test.
function same (found, expected)
  if (! (isequal (found, expected) && strcmp (class (found), class (expected))))
    error ("found %s\n%s instead of %s\n%s", class (found), disp (found), class (expected), disp (expected));
  endif
endfunction

function check_maps ()
  for one = read ("maps.json", "cases")'
    [m, shape] = map_of (one{1}.map, one{1}.shape);
    X = zeros (shape, m);
    parts = one{1}.parts;
    for k = 1:numel (parts)
      stored = pm_each (X, @pm_stored, parts(k).rank);
      owned = pm_each (X, @pm_owned, parts(k).rank);
      for d = 1:numel (parts(k).local_shape)
        axis = parts(k).axes(d);
        same (stored{d}, reshape (axis.stores, 1, []) + 1);
        same (owned{d}, reshape (axis.owns, 1, []) + 1);
      endfor
      if (parts(k).rank == Pid && inmap (m, Pid))
        found = [size(local (X)), 1, 1];
        same (found(1:numel (parts(k).local_shape)), parts(k).local_shape(:)');
      endif
    endfor
  endfor
endfunction

function check_moves ()
  classes = {@double, @single, @(A) A > 4, @int32, @(A) complex(A, mod (A, 3)), @uint8, @int16, ...
             @(A) complex(single (A), -single (A)), @int64};
  number = 0;
  for one = read ("moves.json", "cases")'
    [source, shape] = map_of (one{1}.source, one{1}.shape);
    target = map_of (one{1}.target, one{1}.shape);
    whole = reshape (1:prod (shape), shape);
    whole = classes{mod(number++, end) + 1}(whole);
    X = zeros (shape, source);
    X.local = pm_cut (whole, X, "test");
    ## What the owner has counts, not what is in the overlaps.
    if (inmap (source, Pid))
      stale = true (size (local (X)));
      stale(cellfun (@(own, all) 1:numel (own), pm_each (X, @pm_owned), pm_each (X, @pm_stored), ...
                     "UniformOutput", false){:}) = false;
      X.local(stale) = 0;
    endif
    Y = remap (X, target);
    same (local (Y), pm_cut (whole, Y, "test"));
    same (agg_all (Y), whole);
    if (ndims (whole) == 2 && isa (whole, "double"))
      S = X;
      S.local = sparse (local (S));
      same (full (agg_all (remap (S, target))), whole);
    endif
    ## An assignment moves as well, and synch brings the overlaps.
    Z = zeros (shape, target);
    Z(:) = X;
    same (local (Z), local (Y));
    if (any (overlaps (source)))
      X = synch (X);
      if (inmap (source, Pid))
        same (local (X), pm_cut (whole, X, "test"));
      endif
    endif
  endfor
endfunction

function check_results ()
  warning ("off", "pMatlab:remap", "local");
  number = 0;
  cases = read ("maps.json", "cases");
  arrays = read ("results.json", "arrays");
  for given = arrays(:)'
    given = given{1};
    shape = given.shape(:)';
    whole = array_of (given);
    for one = cases'
      if (numel (one{1}.map.grid) != numel (shape))
        continue;
      endif
      [m, sizes] = map_of (one{1}.map, shape);
      X = zeros (sizes, m);
      X(:) = whole;
      results = given.results;
      if (! iscell (results))
        results = num2cell (results);
      endif
      ## Each result with some of the maps, each map with some of the results: the step has no factor in common.
      for k = mod (number++, 11)+1:11:numel (results)
        check_result (X, whole, results{k});
      endfor
    endfor
  endfor
endfunction

## All elements, or along a dimension.
function Y = over (X, d, f)
  if (isempty (d))
    Y = X;
    for k = 1:ndims (X)
      Y = f (Y, k);
    endfor
  else
    Y = f (X, d);
  endif
endfunction

function Y = place (X, d, f)
  [~, Y] = f (X, [], d);
  Y = Y - 1;
endfunction

function check_result (X, whole, expected)
  d = expected.axis + 1;
  switch (expected.operation)
    case {"sum", "prod", "mean", "any", "all"}
      Y = over (X, d, str2func (expected.operation));
    case "max"
      Y = over (X, d, @(X, d) max (X, [], d));
    case "min"
      Y = over (X, d, @(X, d) min (X, [], d));
    case "var"
      if (isempty (d))
        return;
      endif
      Y = var (X, 1, d);
    case {"argmax", "argmin"}
      if (isempty (d))
        return;
      endif
      Y = place (X, d, str2func (expected.operation(4:6)));
    case "cumulative_sum"
      Y = cumsum (X, d);
    case {"fft", "ifft"}
      Y = feval (expected.operation, X, [], d);
    case "sort"
      Y = sort (X, d);
    case "transpose"
      Y = X.';
    case "times_its_transpose"
      Y = X * X.';
    otherwise
      error ("no such operation: %s", expected.operation);
  endswitch
  wanted = array_of (expected);
  found = double (agg_all (Y));
  same (numel (found), numel (wanted));
  scale = max ([abs(wanted(:)); 1]);
  worst = max (abs (found(:) - wanted(:)));
  if (! (worst <= 1e-12 * scale))
    error ("%s along %s of %s by grid %s: %g off", expected.operation, pm_text (d), pm_text (size (whole)), ...
           pm_text (cells (X.map)), worst);
  endif
endfunction

check_maps ();
check_moves ();
check_results ();
if (Pid == 0)
  disp ("vectors: all right");
endif
