## -*- texinfo -*-
## @deftypefn {} {} MPI_cc (@var{m_file})
## In MATLAB this compiles a script for @code{MPI_Run}. Octave has no compiler, so here it is an error.
## @end deftypefn

function said = MPI_cc (m_file)
  if (nargin < 1 || ! ischar (m_file))
    m_file = "prog";
  end
  error ("limosa:unsupported", ...
         "MPI_cc: Octave has no compiler (mcc); run the script itself: eval (MPI_Run ('%s', n, {}))", m_file);
end
