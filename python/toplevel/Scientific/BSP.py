"""ScientificPython's interface; what is here is `limosa.dialects.scientific.BSP`."""

from limosa.dialects import stand_in

stand_in(__name__, "scientific.BSP")
