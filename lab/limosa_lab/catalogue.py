"""Which benchmark programs there are, and at which numbers of ranks each runs.

A program is one file ``programs/NAME.c``. Its first line says how it runs::

    /* lab: ranks=2,4,8 even limit=120 */

``ranks`` lists numbers of ranks; ``A..B`` stands for the powers of two from A to B. The words after it: ``even`` leaves
out odd numbers, ``limit=SECONDS`` is the time limit of one run if the usual one does not fit.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from limosa_lab.errors import ENVIRONMENT, LabError

FOLDER = Path(__file__).parent / "programs"

# Groups of programs that may be asked for by one name.
GROUPS: dict[str, tuple[str, ...]] = {
    "p2p": (
        "flag",
        "pingpong",
        "pingping",
        "rate",
        "bidirectional",
        "multipair",
        "datatypes",
        "matching",
        "threads",
        "threads_single",
    ),
    "coll": ("collectives", "icollectives"),
    "rma": ("rma",),
    "io": ("io",),
    "neighbour": ("neighbour",),
    "dynamic": ("dynamic",),
    "independence": ("independence", "overlap"),
    "quiet": ("quiet",),
    "scale": ("init_finalize", "memory"),
    "model": ("primitives",),
}

# Programs that are run only if they are named: `limosa model` does.
APART = ("primitives",)

# The program of which the time of the whole job is measured from outside, as the benchmark `start`.
START = "init_finalize"

# The collectives as the programs call them, in IMB's order.
COLLECTIVES = (
    "bcast allgather allgatherv alltoall alltoallv gather gatherv scatter scatterv "
    "reduce allreduce reduce_scatter reduce_scatter_block scan exscan barrier"
).split()

_HEADER = re.compile(r"/\*\s*lab:\s*(?P<words>[^*]*?)\s*\*/")


@dataclass(frozen=True)
class Program:
    """A benchmark program.

    Attributes
    ----------
    ranks
        Numbers of ranks at which it runs.
    limit
        Time limit of one run in seconds; None for the usual one.

    """

    name: str
    source: Path
    ranks: tuple[int, ...]
    limit: float | None = None

    def mentions(self, bench: str) -> bool:
        """Tell whether the program may have this benchmark.

        That is its own name, a string in the source, or a collective in a list of them.
        """
        files = [self.source, *(file for file in headers(self.source) if file.name != "lab.h")]
        text = "".join(file.read_text() for file in files)
        collective = bench.removesuffix("_init") if bench.endswith("_init") else bench.removeprefix("i")
        listed = any(re.search(rf"\bDO\(\w+, {re.escape(name)}\b", text) for name in (bench, collective))
        return bench == self.name or f'"{bench}"' in text or listed or (self.name, bench) == (START, "start")

    def parts(self) -> list[list[str]]:
        """Give the benchmarks of each run; an empty list stands for all of them, in one run.

        Programs that would take minutes are run in parts: the libraries then take turns every few seconds, and a part
        that fails or takes too long does not take the others with it.
        """
        if self.name == "primitives":
            return [["send"], *([name] for name in COLLECTIVES)]
        if self.name == "collectives":
            return [[name] for name in COLLECTIVES]
        if self.name == "icollectives":
            return [[f"i{name}", f"{name}_init"] for name in COLLECTIVES]
        return [[]]


def headers(source: Path) -> list[Path]:
    """Give the headers beside a source that it includes, directly or through others, each once."""
    found: dict[Path, None] = {}
    waiting = [source]
    while waiting:
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', waiting.pop().read_text(), re.MULTILINE):
            header = source.parent / name
            if header.exists() and header not in found:
                found[header] = None
                waiting.append(header)
    return sorted(found)


def parse_header(name: str, source: Path, first_line: str) -> Program:
    """Read the first line of a program."""
    found = _HEADER.match(first_line)
    if found is None:
        raise LabError(
            f"{source} does not begin with a line such as /* lab: ranks=2,4,8 */ but with: {first_line.strip()}"
        )
    ranks: list[int] = []
    limit: float | None = None
    even = False
    for word in found["words"].split():
        key, _, value = word.partition("=")
        try:
            if key == "ranks" and value == "even":
                ranks, even = [2, 4, 8], True
            elif key == "ranks":
                ranks = [number for part in value.split(",") for number in _numbers(part)]
            elif key == "limit":
                limit = float(value)
            elif word == "even":
                even = True
            else:
                raise ValueError
        except ValueError:
            raise LabError(
                f"{source}: `{word}` in the first line is not understood; known: ranks=2,4,8 or ranks=1..64, even, "
                "limit=SECONDS"
            ) from None
    if even:
        ranks = [number for number in ranks if number % 2 == 0]
    if not ranks:
        raise LabError(f"{source}: the first line gives no number of ranks; write for example /* lab: ranks=2,4,8 */")
    return Program(name, source, tuple(ranks), limit)


def _numbers(part: str) -> list[int]:
    first, dots, last = part.partition("..")
    if not dots:
        return [int(first)]
    return [1 << k for k in range(11) if int(first) <= 1 << k <= int(last)]


def programs(folder: Path = FOLDER) -> dict[str, Program]:
    """Give all programs by name."""
    found: dict[str, Program] = {}
    for source in sorted(folder.glob("*.c")):
        with source.open() as file:
            found[source.stem] = parse_header(source.stem, source, file.readline())
    if not found:
        raise LabError(
            f"there are no benchmark programs in {folder}", hint="install the limosa wheel again: it holds them"
        )
    return found


def choose(names: list[str], available: dict[str, Program]) -> list[Program]:
    """Give the programs of these names and groups, in the order of the catalogue; without names, all but `APART`."""
    if not names:
        return [program for name, program in available.items() if name not in APART]
    wanted: set[str] = set()
    for name in names:
        if name in available:
            wanted.add(name)
        elif name in GROUPS:
            wanted.update(GROUPS[name])
        else:
            raise LabError(f"there is no benchmark program or group `{name}`", hint=known(available))
    return [program for program in available.values() if program.name in wanted]


def known(available: dict[str, Program]) -> str:
    """List programs and groups for a message."""
    return f"programs: {', '.join(available)}; groups: {', '.join(GROUPS)}"


def for_benches(benches: list[str], chosen: list[Program]) -> list[Program]:
    """Keep the programs that may have one of these benchmarks; each benchmark must be in one of them."""
    for bench in benches:
        if not any(program.mentions(bench) for program in chosen):
            raise LabError(
                f"none of the chosen programs has a benchmark `{bench}`",
                hint="`limosa bench --list` shows the programs; their sources name the benchmarks",
            )
    return [program for program in chosen if not benches or any(program.mentions(bench) for bench in benches)]


def nothing_to_run(chosen: list[Program], ranks: list[int]) -> LabError:
    """Give the error for numbers of ranks at which none of the chosen programs runs."""
    possible = "; ".join(f"{program.name} at {', '.join(map(str, program.ranks))}" for program in chosen)
    return LabError(
        f"none of the chosen programs runs at {', '.join(map(str, ranks))} ranks", hint=f"possible: {possible}"
    )


def kernels_folder() -> Path:
    """Give the folder of the kernels: in the package, or beside the laboratory in the sources."""
    package = Path(__file__).resolve().parent
    for folder in (package / "kernels", package.parents[1] / "kernels"):
        if (folder / "run.py").is_file():
            return folder
    raise LabError("the kernels are not installed", hint="install the wheel of limosa again", code=ENVIRONMENT)
