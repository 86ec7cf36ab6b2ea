"""boostmpi's interface; what is here is `limosa.dialects.boostmpi`."""

from limosa.dialects import stand_in

stand_in(__name__, "boostmpi")
