## map: which rank has which part of a distributed array.
##
## map (grid_spec, dist_spec, proc_list)
## map (grid_spec, dist_spec, proc_list, overlap_spec)
## map (m)              a copy of a map, or of a struct with its fields
##
## grid_spec     number of cells along each dimension of the array (at least 2 dimensions)
## dist_spec     {} or []: blocks; 'b' or 'c': blocks or cyclic, in all dimensions; or a struct array with an entry for
##               each dimension (one entry serves all): dist 'b', 'c' or 'bc', and for 'bc' b_size, the block
## proc_list     prod (grid_spec) ranks, each once; they fill the grid columns first
## overlap_spec  for each dimension: how many indices after its own block a cell stores too (blocks only)
##
## An axis of N indices and c cells: in blocks, cell p owns p*b+1 .. (p+1)*b with b = ceil (N/c), so that the last cells
## may have less or nothing; cyclically, cell p owns p+1, p+1+c, ...
##
## Fields: dim, proc_list, dist_spec, grid, overlap.
classdef map
  properties
    dim
    proc_list
    dist_spec
    grid
  endproperties
  properties (SetAccess = private)
    overlap = []
  endproperties

  methods
    function m = map (grid_spec, dist_spec, proc_list, overlap_spec)
      if (nargin == 1)
        given = grid_spec;
        for name = {"dim", "proc_list", "dist_spec", "grid", "overlap"}
          try
            m.(name{1}) = given.(name{1});
          catch
            error ("pMatlab:map", "MAP CONSTRUCTOR: the copied value has no field '%s'", name{1});
          end_try_catch
        endfor
        return;
      elseif (nargin < 3 || nargin > 4)
        error ("pMatlab:map", "MAP CONSTRUCTOR: %d arguments; there are 1, 3 or 4: grid_spec, dist_spec, proc_list, \
overlap_spec", nargin);
      endif
      if (! isnumeric (grid_spec) || ! isvector (grid_spec) || numel (grid_spec) < 2
          || any (grid_spec < 1 | grid_spec != fix (grid_spec)))
        error ("pMatlab:map", "MAP CONSTRUCTOR: grid_spec is %s; it has a positive integer for each dimension, at \
least two", pm_text (grid_spec));
      endif
      m.dim = numel (grid_spec);
      if (! isnumeric (proc_list) || numel (proc_list) != prod (grid_spec))
        error ("pMatlab:map", "MAP CONSTRUCTOR: proc_list has %d ranks, but the grid %s has %d cells", ...
               numel (proc_list), pm_text (grid_spec), prod (grid_spec));
      endif
      proc_list = double (proc_list(:)');
      wrong = proc_list(proc_list < 0 | proc_list >= Np () | proc_list != fix (proc_list));
      if (! isempty (wrong))
        error ("pMatlab:map", "MAP CONSTRUCTOR: there is no rank %g; the program has %d ranks, from 0", wrong(1), ...
               Np ());
      endif
      if (numel (unique (proc_list)) != numel (proc_list))
        error ("pMatlab:map", "MAP CONSTRUCTOR: proc_list %s has a rank more than once", pm_text (proc_list));
      endif
      m.proc_list = proc_list;
      m.grid = reshape (proc_list, double (grid_spec(:)'));
      if (nargin == 4 && ! isempty (overlap_spec))
        if (! isnumeric (overlap_spec) || numel (overlap_spec) != m.dim
            || any (overlap_spec < 0 | overlap_spec != fix (overlap_spec)))
          error ("pMatlab:map", "MAP CONSTRUCTOR: overlap_spec is %s; it has a non-negative integer for each of the \
%d dimensions", pm_text (overlap_spec), m.dim);
        endif
        m.overlap = double (overlap_spec(:)');
      endif
      m.dist_spec = pm_distributions (dist_spec, m.dim);
      if (! isempty (m.overlap) && any (! strcmp ({m.dist_spec.dist}, "b")))
        error ("pMatlab:map", "MAP CONSTRUCTOR: an overlap needs blocks ('b') in all dimensions");
      endif
    endfunction

    function r = cells (m)
      ## The number of cells along each dimension.
      r = size (m.grid);
      r(end+1:m.dim) = 1;
    endfunction

    function r = inmap (m, rank)
      ## Has this rank a cell?
      r = any (m.grid(:) == rank);
    endfunction

    function r = transpose (m)
      ## The map with rows and columns exchanged.
      if (m.dim != 2)
        error ("pMatlab:map", "transpose: a map of 2 dimensions has a transpose; this one has %d", m.dim);
      endif
      r = m;
      r.grid = m.grid.';
      r.proc_list = r.grid(:)';
      r.dist_spec = fliplr (m.dist_spec);
      r.overlap = fliplr (m.overlap);
    endfunction

    function r = ctranspose (m)
      r = transpose (m);
    endfunction

    function r = eq (m, other)
      ## All of both maps is equal.
      r = isa (m, "map") && isa (other, "map") && m.dim == other.dim && size_equal (m.grid, other.grid);
      if (r)
        mine = m.dist_spec;
        others = other.dist_spec;
        r = all (m.grid(:) == other.grid(:)) && all (strcmp ({mine.dist}, {others.dist})) ...
            && all ([mine.b_size, 0] == [others.b_size, 0]) && all (overlaps (m) == overlaps (other));
      endif
    endfunction

    function r = ne (m, other)
      ## The grids differ, or the ranks in them; distributions and overlaps are not compared.
      r = ! (isa (m, "map") && isa (other, "map") && m.dim == other.dim && size_equal (m.grid, other.grid)
             && all (m.grid(:) == other.grid(:)));
    endfunction

    function r = overlaps (m)
      ## The overlap of each dimension, also if there is none.
      r = m.overlap;
      if (isempty (r))
        r = zeros (1, m.dim);
      endif
    endfunction

    function display (m)
      printf ("%s = map: grid %s, ranks %s, distribution %s, overlap %s\n", inputname (1, false), ...
              pm_text (cells (m)), pm_text (m.grid(:)'), strjoin (letters (m), " "), pm_text (overlaps (m)));
    endfunction

    function disp (m)
      display (m);
    endfunction

    function r = letters (m)
      ## The distribution of each dimension as text: b, c or bc(4).
      r = {m.dist_spec.dist};
      for d = find (strcmp (r, "bc"))
        r{d} = sprintf ("bc(%d)", m.dist_spec(d).b_size);
      endfor
    endfunction

    ## --- constructors of distributed arrays --------------------------------------------------------------------------

    function X = zeros (varargin)
      X = pm_fill (@zeros, varargin);
    endfunction

    function X = ones (varargin)
      X = pm_fill (@ones, varargin);
    endfunction

    function X = Inf (varargin)
      X = pm_fill (@Inf, varargin);
    endfunction

    function X = NaN (varargin)
      X = pm_fill (@NaN, varargin);
    endfunction

    function X = true (varargin)
      X = pm_fill (@true, varargin);
    endfunction

    function X = false (varargin)
      X = pm_fill (@false, varargin);
    endfunction

    function X = rand (varargin)
      X = pm_draw (@rand, varargin);
    endfunction

    function X = randn (varargin)
      X = pm_draw (@randn, varargin);
    endfunction

    function X = randi (limits, varargin)
      X = pm_draw (@(n) randi (limits, n), varargin);
    endfunction

    function X = uniform (varargin)
      ## uniform (M, N, map, seed): random numbers in [0, 1) that do not depend on the map or the number of ranks; the
      ## same as those of Python's limosa.arrays.random.uniform.
      seed = varargin{end};
      [shape, m] = pm_shape (varargin(1:end-1));
      steps = fliplr (cumprod ([1, fliplr(shape(2:end))]));  # Python's order: the last index varies fastest
      X = pm_from (shape, m, @(varargin) __pmatlab_uniform__ (seed, pm_places (steps, varargin)));
    endfunction

    function X = eye (varargin)
      [shape, m] = pm_shape (varargin);
      X = pm_from (shape, m, @(i, j) double (i == j));
    endfunction

    function X = linspace (from, to, n, m)
      ## The row linspace (from, to, n), dealt by a map.
      X = pm_from ([1 n], m, @(i, j) from + (j - 1) * ((to - from) / max (n - 1, 1)));
      last = pm_from ([1 n], m, @(i, j) double (j == n)).part;
      X.part(logical (last)) = to;
    endfunction

    function X = repmat (A, varargin)
      ## Copies of an ordinary array beside each other: repmat (A, m, n, map), repmat (A, [m n], map).
      [times, m] = pm_shape (varargin);
      dims = size (A);
      dims(end+1:numel (times)) = 1;
      times(end+1:numel (dims)) = 1;
      X = pm_new (dims .* times, m);
      places = pm_inds (X);
      for d = 1:numel (places)
        places{d} = mod (places{d} - 1, dims(d)) + 1;
      endfor
      X.part = A(places{:});
    endfunction

    function X = sparse (varargin)
      ## sparse (m, n, map), sparse ([], [], [], map), sparse ([], [], [], m, n, map), with nzmax before the map.
      [args, m] = pm_map_argument (varargin);
      if (numel (args) == 2)
        shape = [args{:}];
      elseif (numel (args) >= 3 && all (cellfun (@isempty, args(1:3))))
        shape = [args{4:min (5, end)}, 0, 0](1:2);
      else
        error ("pMatlab:sparse", "sparse: the row, column and value lists of a distributed array must be empty; hint: \
assign to its local part");
      endif
      X = pm_new (shape, m);
      X.part = sparse (size (X.part, 1), size (X.part, 2));
    endfunction

    function X = spalloc (varargin)
      ## spalloc (m, n, nzmax, map): room for nzmax elements, shared out to the ranks.
      [args, m] = pm_map_argument (varargin);
      if (numel (args) < 2 || numel (args) > 3)
        error ("pMatlab:sparse", "spalloc: the arguments are m, n, nzmax and a map");
      endif
      X = pm_new ([args{1:2}], m);
      room = 0;
      if (numel (args) == 3)
        room = ceil (args{3} / numel (m.grid));
      endif
      X.part = spalloc (size (X.part, 1), size (X.part, 2), room);
    endfunction
  endmethods
endclassdef
