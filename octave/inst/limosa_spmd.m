## -*- texinfo -*-
## @deftypefn  {} {@var{results} =} limosa_spmd (@var{f}, @var{arguments}, @dots{})
## @deftypefnx {} {@var{results} =} limosa_spmd (@var{n}, @var{f}, @var{arguments}, @dots{})
## Call @code{@var{f} (@var{arguments}, @dots{})} on all workers, as an @code{spmd} block does, and return a cell with
## the result of each worker, as a Composite.
##
## In @var{f}, the functions @code{spmdIndex}, @code{spmdSend}, @code{spmdPlus} and so on work, and their older names
## @code{labindex}, @code{labSend}, @code{gplus}. In a job, the workers are its ranks: all of them call
## @code{limosa_spmd}, and all get the results. At the prompt, @code{limosa_spmd} starts @var{n} processes, by default
## one for each processor, as @code{limosa_run} does.
##
## @example
## sums = limosa_spmd (@@() spmdPlus (spmdIndex ()));     # 1 + 2 + ... + spmdSize () from each worker
## squares = limosa_spmd (@@(x) x ^ spmdIndex (), 3);     # @{3, 9, 27, @dots{}@}
## @end example
## @seealso{limosa_run, limosa_map, spmdIndex}
## @end deftypefn

function results = limosa_spmd (varargin)
  ## Also a rank of another library's launcher.
  is_rank = ! all (cellfun (@(name) isempty (getenv (name)), {"LIMOSA_RANK", "PMI_RANK", "PMIX_RANK"}));
  if (is_rank)
    n = limosa_size ();
  else
    n = nproc ();
  endif
  if (nargin > 0 && isnumeric (varargin{1}))
    if (is_rank && ! isequal (varargin{1}, n))
      error ("limosa:arg", "limosa_spmd: in a job the workers are all its %d ranks; leave the number out", n);
    endif
    n = varargin{1};
    varargin(1) = [];
  endif
  if (isempty (varargin))
    print_usage ();
  elseif (! is_rank)
    results = limosa_run (n, varargin{:});
  else
    f = varargin{1};
    if (ischar (f))
      f = str2func (f);
    endif
    results = limosa_allgather (call_for_value (f, varargin(2:end)));
  endif
endfunction

## The value of a function; [] if it returns none.
function result = call_for_value (f, arguments)
  ans = [];
  f (arguments{:});
  result = ans;
endfunction
