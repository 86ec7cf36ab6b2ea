## startup_ncmdsSlv
##
## For a process that Octave_Spawn has started: joins the parent and evaluates the commands that NumCmds_Send sends, as
## NumCmds_Init has said. Commands can use the global variables WORLD, NEWORLD, RANK, HOSTNAME, NUMCMDS, QUIT, TAG,
## DEBUG and MPILoopIdx (the number of the command), and whatever has been sent or computed before.

function startup_ncmdsSlv ()
  global WORLD NEWORLD RANK HOSTNAME NUMCMDS QUIT TAG DEBUG MPILoopIdx
  startup_mergeParent
  settings = zeros (1, 4);
  MPI_Bcast (settings, 0, NEWORLD);
  NUMCMDS = settings(1);
  QUIT = logical (settings(2));
  TAG = settings(3);
  DEBUG = logical (settings(4));
  MPILoopIdx = 0;
  lastcmd = "";
  while NUMCMDS == 0 || MPILoopIdx < NUMCMDS
    MPILoopIdx++;
    [info, stat] = MPI_Probe (0, TAG, NEWORLD);
    [info, bytes] = MPI_Get_count (stat);
    buffer = blanks (bytes);
    MPI_Recv (buffer, 0, TAG, NEWORLD);
    MPI_Unpack (buffer, 0, NEWORLD);
    if ! exist ("cmd", "var")
      cmd = lastcmd;
    end
    if DEBUG
      printf ("rank %d, command %d: %s\n", RANK, MPILoopIdx, cmd(1:min (50, end)));
      fflush (stdout);
    end
    lastcmd = cmd;
    clear cmd
    if any (strcmp (strtrim (lastcmd), {"break", "exit", "quit"}))
      break
    end
    eval (lastcmd);
  end
  MPI_Finalize ();
  if QUIT || any (strcmp (strtrim (lastcmd), {"exit", "quit"}))
    quit
  end
end
