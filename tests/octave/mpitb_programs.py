"""What the tests of MPITB's interface share: programs begin and end alike, and all ranks must get to the end."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Octave

#: What the programs begin with: C, rank and size are set. `same` stops a rank with the values.
NAMES = """\
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

START = f"MPI_Init;\n{NAMES}"
START_IN_TURN = f"if ! nthargout (2, @MPI_Initialized), MPI_Init; end\n{NAMES}"

END = """
same (mpitb_held (), 0);
MPI_Finalize;
printf ("%d is done\\n", rank);
"""
END_IN_TURN = END.replace("MPI_Finalize", "MPI_Barrier (MPI_COMM_WORLD)")


class Programs:
    """Runs pieces of programs with the module."""

    def __init__(self, octave: Octave) -> None:
        self._octave = octave

    def code(self, text: str, *, n: int = 2, **options):
        return self._octave.code(START + textwrap.dedent(text) + END, n=n, paths=("mpitb",), **options)

    def passes(self, text: str, *, n: int = 2, is_alone: bool = False) -> None:
        """The program runs to its end on all ranks: in turn with others, unless it changes what these rely on."""
        if is_alone:
            outcome = self.code(text, n=n)
        else:
            program = START_IN_TURN + textwrap.dedent(text) + END_IN_TURN
            outcome = self._octave.code_in_turn(program, n=n, paths=("mpitb",))
        done = [line for line in outcome.out.splitlines() if line.endswith(" is done")]
        assert sorted(done) == [f"{rank} is done" for rank in range(n)], outcome.text
