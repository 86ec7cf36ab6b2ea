## As Octave's own function of this name: the script, not what `limosa run` has started.

function name = program_invocation_name ()
  name = getenv ("OCTAVE_LIMOSA_SCRIPT");
endfunction
