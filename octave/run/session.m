## One rank of `limosa shell --octave`: runs what the front sends, up to the end of the session (octave/src/shell.cc).

more ("off");
__limosa_serve__ (argv (){1});
