## -*- texinfo -*-
## @deftypefn {} {@var{version} =} MatlabMPI_ver ()
## Return the version of MatlabMPI whose functions these are.
## @end deftypefn

function version = MatlabMPI_ver ()
  version = "1.2br2";
end
