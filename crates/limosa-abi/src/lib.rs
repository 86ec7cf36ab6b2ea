//! libmpi_abi: the MPI-5 standard ABI over limosa-mpi.
