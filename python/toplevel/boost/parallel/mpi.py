"""The Python interface of Boost.MPI under its older name; what is here is `limosa.dialects.boost_mpi`."""

from limosa.dialects import stand_in

stand_in(__name__, "boost_mpi")
