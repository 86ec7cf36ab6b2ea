## -*- texinfo -*-
## @deftypefn {} {@var{name} =} MatMPI_Lock_file (@var{source}, @var{dest}, @var{tag}, @var{comm})
## Return the name of the empty file that says that the message beside it is complete.
## @end deftypefn

function name = MatMPI_Lock_file (source, dest, tag, comm)
  name = __matmpi_file__ (source, dest, tag, comm, "lock");
end
