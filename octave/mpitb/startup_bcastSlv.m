## startup_bcastSlv
##
## For a process that Octave_Spawn has started: joins the parent, receives one command of up to 100 characters that the
## parent broadcasts on NEWORLD as a text of exactly 100 characters, evaluates it, and ends. The command can use the
## global variables WORLD, NEWORLD, RANK and HOSTNAME.

function startup_bcastSlv ()
  global WORLD NEWORLD RANK HOSTNAME
  startup_mergeParent
  cmd = blanks (100);
  MPI_Bcast (cmd, 0, NEWORLD);
  eval (cmd);
  MPI_Finalize ();
end
