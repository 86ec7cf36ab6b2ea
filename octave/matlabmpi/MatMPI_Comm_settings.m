## -*- texinfo -*-
## @deftypefn {} {@var{s} =} MatMPI_Comm_settings ()
## Return how @code{MPI_Run} starts ranks. A function of this name that comes before on the path replaces these
## settings.
##
## The fields are @code{type} (of this machine: @qcode{"unix"}), @code{matlab_command} (the interpreter),
## @code{remote_launch} and @code{remote_flags} (what starts a command on another machine, before and after its name),
## and @code{pc_unix_dir_map} (a drive letter of Windows and the folder that it stands for).
## @end deftypefn

function s = MatMPI_Comm_settings ()
  s.type = "unix";
  s.matlab_command = [matmpi_quote(fullfile (OCTAVE_EXEC_HOME (), "bin", "octave-cli")), " --traditional --quiet"];
  s.remote_launch = " ssh ";
  s.remote_flags = " -n ";
  s.pc_unix_dir_map = {"Z:", getenv("HOME")};
end
