## NumCmds_Init ([ncmd [, quit [, tag [, debug]]]])
##
## Begins the NumCmds protocol with processes that run startup_ncmdsSlv: they will take `ncmd` commands, or any number
## until one is "break" (0, the default); end afterwards if `quit` is true; receive messages with this tag (the global
## variable TAG, otherwise 777); and print every command if `debug` is true (the global variable DEBUG, otherwise
## true). TAG and DEBUG are set. NumCmds_Send sends commands.

function NumCmds_Init (ncmd = 0, quit = false, tag = [], debug = [])
  global TAG DEBUG NEWORLD
  if isempty (tag)
    tag = ifempty (TAG, 777);
  end
  if isempty (debug)
    debug = ifempty (DEBUG, true);
  end
  names = {"ncmd", "quit", "tag", "debug"};
  values = {ncmd, quit, tag, debug};
  for i = 1:4
    v = values{i};
    if ! isscalar (v) || ! isreal (v) || v < 0 || v != fix (v)
      error ("limosa:arg", "NumCmds_Init: %s must be a whole number, 0 or more", names{i});
    end
  end
  if isempty (NEWORLD)
    error ("limosa:arg", "NumCmds_Init: there are no other processes yet: call Octave_Spawn");
  end
  TAG = tag;
  DEBUG = logical (debug);
  settings = [ncmd, quit, tag, debug];
  MPI_Bcast (settings, 0, NEWORLD);
end

function value = ifempty (value, other)
  if isempty (value)
    value = other;
  end
end
