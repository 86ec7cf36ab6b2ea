## -*- texinfo -*-
## @deftypefn {} {} MatMPI_Delete_all ()
## Remove all files of messages of the last run from this folder, and the folder @file{MatMPI}.
## @end deftypefn

function MatMPI_Delete_all ()
  if (exist ("MatMPI", "dir") != 7)
    disp ("MatMPI_Delete_all: there is nothing to remove: no folder MatMPI");
    return;
  end
  file = "MatMPI/MPI_COMM_WORLD.mat";
  folders = {};
  if (exist (file, "file") == 2)
    try
      folders = load (file).MPI_COMM_WORLD.machine_db.dir;
    catch
      ## Half a file, of a run that was stopped: its messages are in the folder itself.
    end
  end
  for k = 1:numel (folders)
    for kind = {"buffer", "lock"}
      names = glob (fullfile (folders{k}, ["p*_p*_t*_", kind{1}, ".mat"]));
      cellfun (@(name) unlink (name), names);
    end
  end
  confirm_recursive_rmdir (false, "local");
  ## What watches over a rank that was killed a moment ago may still write how it ended.
  for k = 1:100
    [removed, text] = rmdir ("MatMPI", "s");
    if (removed)
      break;
    end
    pause (0.02);
  end
  if (! removed)
    error ("limosa:file", "MatMPI_Delete_all: the folder MatMPI cannot be removed: %s", text);
  end
end
