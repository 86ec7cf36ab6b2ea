## -*- texinfo -*-
## @deftypefn {} {[@var{flag}, @var{stat}, @var{info}] =} MPI_Iprobe (@var{source}, @var{tag}, @var{comm})
## Tell whether there is a message that @code{MPI_Recv} with these arguments would receive now, and which.
## @seealso{MPI_Probe, MPI_Recv}
## @end deftypefn

function [flag, stat, info] = MPI_Iprobe (varargin)
  comm = mpi_check ("MPI_Iprobe", 3, varargin);
  [flag, found] = limosa_iprobe (mpi_any (varargin{1}), mpi_any (varargin{2}), comm);
  flag = double (flag);
  stat = mpi_status (found, comm);
  info = 0;
endfunction
