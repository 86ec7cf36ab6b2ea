"""pypar's interface; what is here is `limosa.dialects.pypar`."""

from limosa.dialects import stand_in

stand_in(__name__, "pypar")
