## -*- texinfo -*-
## @deftypefn  {} {@var{results} =} limosa_run (@var{n}, @var{f})
## @deftypefnx {} {@var{results} =} limosa_run (@var{n}, @var{f}, @var{arguments}, @dots{})
## Start @var{n} processes, call @code{@var{f} (@var{arguments}, @dots{})} on each, and return a cell with what each
## has returned.
##
## This is for an Octave that is not itself part of a job, as at the prompt. In @var{f}, all functions of this package
## work: @code{limosa_rank ()} is 0 to @var{n}-1. Folders that were added to the path and the current folder are those
## of the caller. What the processes print appears as it comes. If one of them fails, all end, and its error is raised
## here with its rank and stack.
##
## @example
## squares = limosa_run (4, @@() limosa_rank () ^ 2);        # @{0, 1, 4, 9@}
## sums = limosa_run (3, @@(x) limosa_allreduce (x), 1:2);   # three times [3 6]
## @end example
## @seealso{limosa_map}
## @end deftypefn

function results = limosa_run (n, f, varargin)
  if (nargin < 2)
    print_usage ();
  endif
  if (! (isnumeric (n) && isscalar (n) && n == fix (n) && n > 0))
    error ("limosa:arg", "limosa_run: the number of processes must be an integer from 1 on");
  endif
  if (! isempty (getenv ("LIMOSA_RANK")))
    error ("limosa:arg", "limosa_run: this Octave is a rank of a job already; call the function itself");
  endif
  if (ischar (f))
    f = str2func (f);
  endif
  command = getenv ("OCTAVE_LIMOSA_COMMAND");
  if (isempty (command))
    command = "limosa";
  endif
  folder = tempname ();
  mkdir (folder);
  unwind_protect
    __limosa_write__ (fullfile (folder, "call"), {f, varargin, path()});
    script = fullfile (fileparts (fileparts (mfilename ("fullpath"))), "run", "call.m");
    if (! exist (script, "file"))
      ## An installed package.
      script = fullfile (fileparts (mfilename ("fullpath")), "run", "call.m");
    endif
    code = system (sprintf ("'%s' run -n %d '%s' '%s'", command, n, script, folder));
    problem = fullfile (folder, "problem");
    if (exist (problem, "file"))
      problem = __limosa_read__ (problem);
      error (problem);
    elseif (code != 0)
      error ("limosa:run", "limosa_run: the job ended with exit code %d; see what it has printed", code);
    endif
    results = cell (1, n);
    for rank = 1:n
      results{rank} = __limosa_read__ (fullfile (folder, sprintf ("result%d", rank - 1)));
    endfor
  unwind_protect_cleanup
    confirm_recursive_rmdir (false, "local");
    [~] = rmdir (folder, "s");
  end_unwind_protect
endfunction
