## -*- texinfo -*-
## @deftypefn {} {@var{comm} =} MatMPI_Save_messages (@var{comm}, @var{flag})
## Return a communicator that keeps the files of received messages (@var{flag} 1), or deletes them (0).
##
## With 1 messages travel as files, whatever the job does by default, and a broadcast does not wait for its receivers.
## @end deftypefn

function comm = MatMPI_Save_messages (comm, flag)
  if (! ((isnumeric (flag) || islogical (flag)) && isscalar (flag)))
    error ("limosa:argument", "MatMPI_Save_messages: the flag is 0 or 1");
  end
  comm.save_message_flag = double (flag != 0);
  ## A job whose messages travel by memory has had no need of its folder until now.
  if (flag && exist (comm.folder, "dir") != 7 && any (strcmp (comm.machine_db.dir, comm.folder)))
    [~] = mkdir (comm.folder);
  end
end
