## -*- texinfo -*-
## @deftypefn  {} {@var{results} =} limosa_map (@var{f}, @var{items})
## @deftypefnx {} {@var{results} =} limosa_map (@var{f}, @var{items}, @var{more_items}, @dots{})
## @deftypefnx {} {@var{results} =} limosa_map (@dots{}, @var{comm})
## Call the function @var{f} for each element of the cell or array @var{items}, and return a cell of the results, of the
## same size, on every rank. With more cells or arrays of that many elements, @var{f} gets one element of each.
##
## All ranks call @code{limosa_map} with the same arguments. A rank that has finished an item takes the next, so items
## may take different times. If @var{f} fails for some item, all ranks get the error of the first such item.
##
## @example
## areas = limosa_map (@@(r) pi * r ^ 2, 1:100);
## sums = limosa_map (@@plus, 1:3, 4:6);                   # @{5, 7, 9@}
## lengths = limosa_map (@@numel, @{"a", "bcd", ""@});   # @{1, 3, 0@}
## @end example
## @seealso{limosa_run, limosa_allgather}
## @end deftypefn

function results = limosa_map (f, items, varargin)
  if (nargin < 2)
    print_usage ();
  endif
  if (ischar (f))
    f = str2func (f);
  endif
  if (! is_function_handle (f))
    error ("limosa:arg", "limosa_map: the first argument must be a function or its name");
  endif
  comm = [];
  if (! isempty (varargin) && (isempty (varargin{end}) || (isa (varargin{end}, "int32") && isscalar (varargin{end}))))
    comm = varargin{end};
    varargin(end) = [];
  endif
  lists = [{items}, varargin];
  is_array = ! cellfun (@iscell, lists);
  lists(is_array) = cellfun (@num2cell, lists(is_array), "UniformOutput", false);
  if (any (cellfun (@numel, lists) != numel (items)))
    error ("limosa:count", "limosa_map: the lists of items have %s elements; they must have the same number", ...
           strjoin (cellfun (@(list) num2str (numel (list)), lists, "UniformOutput", false), ", "));
  endif
  done = {};
  __limosa_counter__ ("start", comm);
  unwind_protect
    while ((k = __limosa_counter__ ("next", comm)) <= numel (items))
      try
        picked = cellfun (@(list) list(k), lists);
        done(end + 1, :) = {k, f(picked{:}), []};
      catch problem
        done(end + 1, :) = {k, [], struct("message", problem.message, "identifier", problem.identifier)};
      end_try_catch
    endwhile
    all_done = limosa_allgather (done, comm);
  unwind_protect_cleanup
    __limosa_counter__ ("end", comm);
  end_unwind_protect
  all_done = vertcat (all_done{:});
  results = cell (size (items));
  if (isempty (all_done))
    return;
  endif
  numbers = [all_done{:, 1}];
  results(numbers) = all_done(:, 2);
  failed = find (! cellfun ("isempty", all_done(:, 3)));
  if (! isempty (failed))
    [~, first] = min (numbers(failed));
    problem = all_done{failed(first), 3};
    error (struct ("message", sprintf ("limosa_map: item %d: %s", numbers(failed(first)), problem.message), ...
                   "identifier", problem.identifier));
  endif
endfunction
