## -*- texinfo -*-
## @deftypefn {} {} limosa_toolbox (@var{name})
## Put a toolbox of the past in front of the path: @qcode{"matlabmpi"}, @qcode{"mpi"}, @qcode{"mpitb"} or
## @qcode{"pmatlab"}.
##
## Their functions have the same names, so one Octave can use only one of them. This is for the installed package;
## @code{limosa run --dialect mpitb script.m} does it for a script.
##
## @example
## pkg load limosa
## limosa_toolbox matlabmpi
## @end example
## @end deftypefn

function limosa_toolbox (name)
  needs = struct ("matlabmpi", {{"matlabmpi"}}, "mpi", {{"mpi"}}, "mpitb", {{"mpitb"}}, ...
                  "pmatlab", {{"matlabmpi", "pmatlab"}});
  if (nargin != 1 || ! ischar (name) || ! isfield (needs, name))
    error ("limosa:arg", "limosa_toolbox: give one of %s", strjoin (fieldnames (needs)', ", "));
  endif
  folder = fileparts (mfilename ("fullpath"));
  for part = needs.(name)
    list = fullfile (folder, ["autoload_", part{1}]);
    if (! exist (list, "file"))
      error ("limosa:arg", "limosa_toolbox: %s is not part of this installation; use limosa run --dialect %s", ...
             part{1}, name);
    endif
    ## A package that is installed for all users has its compiled parts elsewhere; "pkg load" has put them in the path.
    module = file_in_loadpath ([part{1}, ".oct"]);
    functions = regexp (fileread (list), 'autoload \("(\w+)"', "tokens");
    for k = 1:numel (functions)
      autoload (functions{k}{1}, module);
    endfor
    addpath (fullfile (folder, part{1}));
  endfor
endfunction
