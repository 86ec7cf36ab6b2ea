## -*- texinfo -*-
## @deftypefn {} {[@var{stat}, @var{info}] =} MPI_Probe (@var{source}, @var{tag}, @var{comm})
## Wait for a message that @code{MPI_Recv} with these arguments would receive, and tell which it is.
##
## @var{stat} has the fields @code{MPI_SOURCE}, @code{MPI_TAG}, @code{MPI_ERROR}, @code{MPI_Get_count} (bytes; of
## a long value those of its announcement) and @code{cancelled}.
## @seealso{MPI_Iprobe, MPI_Recv}
## @end deftypefn

function [stat, info] = MPI_Probe (varargin)
  comm = mpi_check ("MPI_Probe", 3, varargin);
  stat = mpi_status (limosa_probe (mpi_any (varargin{1}), mpi_any (varargin{2}), comm), comm);
  info = 0;
endfunction
