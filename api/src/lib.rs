//! MPI-5 as data, and the generators that read it.
