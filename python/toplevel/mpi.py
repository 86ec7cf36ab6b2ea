"""pyMPI's, MYMPI's or Boost.MPI's interface, which share this name; `limosa.dialects.mpi_choice` decides."""

from limosa.dialects import mpi_choice, stand_in

stand_in(__name__, mpi_choice.MODULES[mpi_choice.choose()])
