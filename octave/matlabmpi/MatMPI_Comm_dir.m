## -*- texinfo -*-
## @deftypefn {} {@var{comm} =} MatMPI_Comm_dir (@var{comm}, @var{folder})
## Return a communicator whose messages travel as files in @var{folder}.
##
## All ranks that exchange messages use the same folder.
## @end deftypefn

function comm = MatMPI_Comm_dir (comm, folder)
  if (! (ischar (folder) && rows (folder) == 1))
    error ("limosa:argument", "MatMPI_Comm_dir: the folder is a text");
  end
  comm.machine_db.dir(:) = {folder};
  comm.by_files = true;
end
