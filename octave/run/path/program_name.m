## As Octave's own function of this name: the script, not what `limosa run` has started.

function name = program_name ()
  [~, name, extension] = fileparts (getenv ("OCTAVE_LIMOSA_SCRIPT"));
  name = [name, extension];
endfunction
