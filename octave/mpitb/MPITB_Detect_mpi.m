## name = MPITB_Detect_mpi ()
##
## The name of the MPI library, as far as it says: "Limosa", "MPICH", "Open MPI" ..., or "unknown".

function name = MPITB_Detect_mpi ()
  [info, text] = MPI_Get_library_version ();
  name = "unknown";
  for known = {"Limosa", "MPICH", "Open MPI", "Intel"}
    if ! isempty (strfind (text, known{1}))
      name = known{1};
    end
  end
end
