## What `limosa run script.m` starts: prepares this Octave, runs the script in the base workspace, and reports an error
## that was not caught.

## A rank that is ended from outside leaves no files behind.
sigterm_dumps_octave_core (false);
sighup_dumps_octave_core (false);
sigquit_dumps_octave_core (false);
crash_dumps_octave_core (false);
__limosa_state__ = warning ("off", "Octave:shadowed-function");
autoload ("__limosa_add_folders__", getenv ("OCTAVE_LIMOSA_MODULE"));
## The functions beside the script are found from everywhere, too.
__limosa_add_folders__ ();
warning (__limosa_state__);
clear __limosa_state__
__limosa_begin__ ();
__limosa_watch_input__ ();
try
  __limosa_source__ (getenv ("OCTAVE_LIMOSA_SCRIPT"));
catch __limosa_problem__
  __limosa_uncaught__ (__limosa_problem__);
end_try_catch
