"""ScientificPython's interface; what is here is `limosa.dialects.scientific.N`."""

from limosa.dialects import stand_in

stand_in(__name__, "scientific.N")
