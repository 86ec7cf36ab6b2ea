"""What the tests of MPITB's interface share: programs begin and end alike, and all ranks must get to the end."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Octave

#: What the programs begin with: MPI is there, C, rank and size are set. `same` stops a rank with the values.
START = """\
MPI_Init;
C = MPI_COMM_WORLD;
[info, rank] = MPI_Comm_rank (C);
[info, size] = MPI_Comm_size (C);
function same (got, wanted)
  if ! isequal (class (got), class (wanted)) || ! isequal (got, wanted)
    error ("test:different", "got %s\\nwanted %s", disp (got), disp (wanted));
  end
end
function throws (id, code)
  try
    evalin ("caller", code);
  catch e
    if ! strcmp (e.identifier, id)
      error ("test:different", "%s raised '%s': %s", code, e.identifier, e.message);
    end
    return
  end
  error ("test:different", "%s raised nothing", code);
end
"""

END = """
same (mpitb_held (), 0);
MPI_Finalize;
printf ("%d is done\\n", rank);
"""


class Programs:
    """Runs pieces of programs with the module."""

    def __init__(self, octave: Octave) -> None:
        self._octave = octave

    def code(self, text: str, *, n: int = 2, **options):
        return self._octave.code(START + textwrap.dedent(text) + END, n=n, paths=("mpitb",), **options)

    def passes(self, text: str, *, n: int = 2, **options) -> None:
        """The program runs to its end on all ranks."""
        outcome = self.code(text, n=n, **options)
        done = [line for line in outcome.out.splitlines() if line.endswith(" is done")]
        assert sorted(done) == [f"{rank} is done" for rank in range(n)], outcome.text
