% [failed, results ...] = limosa_mex_call (n, f, arguments ...) Calls a function for n results; limosa_mex does so when
% MPI needs a function of the user's own. If that fails, `failed` is a cell of the error's identifier and message, else
% {}.

function [failed, varargout] = limosa_mex_call (n, f, varargin)
  failed = {};
  varargout = cell (1, n);
  try
    [varargout{1:n}] = feval (f, varargin{:});
  catch problem
    failed = {problem.identifier, problem.message};
  end
end
