"""ScientificPython's interface; what is here is `limosa.dialects.scientific.MPI`."""

from limosa.dialects import stand_in

stand_in(__name__, "scientific.MPI")
