## As Octave's own function of this name, without the words that `limosa run` has put in front of the script's.

function words = argv ()
  words = builtin ("argv");
  start = find (strcmp (words, getenv ("OCTAVE_LIMOSA_START")), 1, "last");
  words = words(max ([start, 0]) + 1:end);
endfunction
