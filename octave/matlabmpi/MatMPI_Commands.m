## -*- texinfo -*-
## @deftypefn {} {[@var{defs}, @var{command}] =} MatMPI_Commands (@var{m_file}, @var{rank}, @var{comm})
## Return the statements by which an interpreter becomes a rank and runs the script, and the lines of a shell script
## that run such an interpreter.
## @end deftypefn

function [defs, command] = MatMPI_Commands (m_file, rank, comm)
  file = fullfile (comm.folder, "MPI_COMM_WORLD.mat");
  defs = sprintf ("global MPI_COMM_WORLD;\nload ('%s');\nMPI_COMM_WORLD.rank = %d;\n", strrep (file, "'", "''"), ...
                  rank);
  run = sprintf ("try\n%s;\ncatch matmpi_failure\nmatmpi_failed (matmpi_failure);\nend\n", m_file);
  if (rank == comm.host_rank)
    defs = [defs, run];
  else
    quiet = "sigterm_dumps_octave_core (false);\nsighup_dumps_octave_core (false);\n"; # a killed rank leaves no file
    defs = [quiet, sprintf("addpath (%s);\n", matmpi_folders ()), defs, "matmpi_join ();\n", run];
  end
  ## The name of the machine is written here: the one that it has for itself may be different.
  machine = comm.machine_db.machine{comm.machine_id(rank + 1)};
  command = sprintf ("%s <MatMPI/MatMPIdefs%d.m >MatMPI/%s.%d.out 2>&1 &\n: >MatMPI/pid.%s.$!\nwait $!\ncode=$?\n\
echo $code >MatMPI/ended.%d\nexit $code\n", comm.machine_db.matlab_command{comm.machine_id(rank + 1)}, rank, ...
                     m_file, rank, machine, rank);
end
