## -*- texinfo -*-
## @deftypefn {} {@var{name} =} MatMPI_Buffer_file (@var{source}, @var{dest}, @var{tag}, @var{comm})
## Return the name of the file that holds a message, in the folder for messages to the machine of @var{dest}.
## @end deftypefn

function name = MatMPI_Buffer_file (source, dest, tag, comm)
  name = __matmpi_file__ (source, dest, tag, comm, "buffer");
end
