## As Octave's own function of this name, but there is nothing to do for `pkg load mpi`.

function varargout = pkg (varargin)
  words = varargin;
  if (numel (words) > 1 && strcmp (words{1}, "load"))
    words(strcmp (words, "mpi")) = [];
    if (numel (words) == 1)
      return;
    endif
  endif
  folder = fileparts (mfilename ("fullpath"));
  rmpath (folder);
  unwind_protect
    [varargout{1:nargout}] = pkg (words{:});
  unwind_protect_cleanup
    addpath (folder);
  end_unwind_protect
endfunction
