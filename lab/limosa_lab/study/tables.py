"""The tables of a study, as text for a terminal; `page` writes the same ones as HTML. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from limosa_lab.records import Recording
from limosa_lab.study import thesis
from limosa_lab.study.plan import MODULES
from limosa_lab.study.results import (
    MICRO,
    REFERENCE,
    Contender,
    Times,
    contenders,
    curve,
    least_squares,
    micro,
    own_times,
    ratio,
    speedup,
)
from limosa_lab.tables import Table
from limosa_lab.wording import number, ranks, seconds, size

TITLES = {
    "pingpong": "ping-pong",
    "bcast": "broadcast",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "inner": "inner product",
    "wave3d": "wave equation",
    "cg": "conjugate gradients",
    "mandelbrot": "Mandelbrot set",
}


def ping_pong(found: Times, libraries: dict[str, str]) -> Table | None:
    """Give table 5.1 of the thesis: latency and bandwidth by least squares, and the ends of the measured curve."""
    table = Table(
        "Ping-pong: latency and bandwidth by least squares (table 5.1)",
        [
            "module",
            "library",
            "latency us",
            "bandwidth MB/s",
            "smallest us",
            "largest MB/s",
            "thesis us",
            "thesis MB/s",
        ],
        words=2,
    )
    for who in contenders(found):
        times = micro(found, "pingpong", 2, who)
        if not times:
            continue
        line = least_squares(list(times), list(times.values()))
        low, high = min(times), max(times)
        latency, bandwidth = thesis.LATENCY_US.get(who.module), thesis.BANDWIDTH.get(who.module)
        table.rows.append(
            [
                MODULES[who.module],
                libraries[who.library],
                number(1e6 * line.latency) if line else "-",
                number(1e-6 * line.bandwidth) if line else "-",
                number(1e6 * times[low]),
                number(1e-6 * high / times[high]),
                number(latency) if latency else "-",
                number(bandwidth) if bandwidth else "-",
            ]
        )
    return table if table.rows else None


def collectives(found: Times, libraries: dict[str, str]) -> list[Table]:
    """Give the times of broadcast, reduce and allreduce at each size (figures 5.1 to 5.3)."""
    made = []
    for bench in MICRO[1:]:
        for count in sorted({point.ranks for point in found if point.bench == bench}):
            everyone = [who for who in contenders(found) if micro(found, bench, count, who)]
            sizes = sorted({point.size for point in found if (point.bench, point.ranks) == (bench, count)})
            table = Table(
                f"{TITLES[bench].capitalize()} on {ranks(count)}: time in us by size of the message",
                ["module", "library", *map(size, sizes)],
                words=2,
            )
            for who in everyone:
                times = micro(found, bench, count, who)
                table.rows.append(
                    [*_names(who, libraries), *(number(1e6 * times[at]) if at in times else "-" for at in sizes)]
                )
            made.append(table)
    return made


def applications(found: Times, recording: Recording) -> list[Table]:
    """Give run times and speed-ups of each application and mesh, by number of processes."""
    libraries = recording.titles()
    made = []
    for bench, mesh in meshes(found):
        form = "blocking" if bench == "wave3d" else ""
        counts = sorted(
            {point.ranks for point in found if (point.bench, point.size, point.form) == (bench, mesh, form)}
        )
        table = Table(
            f"{TITLES[bench].capitalize()}, {mesh_of(bench, mesh)}: time and speed-up by number of processes",
            ["module", "library", *(ranks(count) for count in counts)],
            words=2,
        )
        for who in contenders(found):
            times = curve(found, bench, mesh, form, who)
            if times:
                gains = speedup(times)
                cells = [
                    _time(times[count], gains.get(count)) if count in times else _missing(recording, who, count)
                    for count in counts
                ]
                table.rows.append([*_names(who, libraries), *cells])
        made.append(table)
    return made


def meshes(found: Times) -> list[tuple[str, int]]:
    """List the applications with their meshes.

    Those that only some modules computed, to compare ways of computing, are left out.
    """
    everyone = {
        bench: {who.module for point, by in found.items() if point.bench == bench for who in by} for bench in TITLES
    }
    pairs = sorted(
        {(point.bench, point.size) for point in found if point.bench not in MICRO},
        key=lambda pair: (list(TITLES).index(pair[0]), pair[1]),
    )
    return [
        (bench, mesh)
        for bench, mesh in pairs
        if {who.module for point, by in found.items() if (point.bench, point.size) == (bench, mesh) for who in by}
        == everyone[bench]
    ]


def _time(time: float, gain: float | None) -> str:
    return seconds(time) + (f" ({number(gain)} x)" if gain is not None else "")


def _missing(recording: Recording, who: Contender, count: int) -> str:
    """Say why there is no number: what went wrong with the jobs of this contender on so many processes."""
    for run in recording.runs:
        if (
            (run.library, run.ranks) == (who.library, count)
            and run.program.endswith(f", {MODULES[who.module]}")
            and run.outcome != "ok"
        ):
            return run.outcome
    return "-"


def wave_forms(found: Times, recording: Recording) -> Table | None:
    """Compare the forms of the wave equation: exchange blocking and not, step by slices, in place, compiled, and C."""
    libraries = recording.titles()
    sizes = sorted({point.size for point in found if point.bench == "wave3d"})
    counts = sorted({point.ranks for point in found if point.bench == "wave3d"})
    table = Table(
        "Wave equation: time by the way a step is computed and faces are exchanged, and how many times C's time with "
        "blocking exchange",
        ["mesh", "module", "library", "step", "exchange", *(ranks(count) for count in counts)],
        words=5,
    )
    for mesh in sizes:
        forms = sorted(
            {point.form for point in found if (point.bench, point.size) == ("wave3d", mesh)}, key=_form_order
        )
        for who in contenders(found):
            own = {form: curve(found, "wave3d", mesh, form, who) for form in forms}
            if sum(bool(times) for times in own.values()) < 2:
                continue
            in_c = curve(found, "wave3d", mesh, "blocking", Contender(who.library, "c"))
            for form, times in own.items():
                if times:
                    cells = [_against_c(times.get(count), in_c.get(count)) for count in counts]
                    step, exchange = step_and_exchange(form, who.module)
                    table.rows.append([f"{mesh}^3", *_names(who, libraries), step, exchange, *cells])
    return table if table.rows else None


def step_and_exchange(form: str, module: str) -> tuple[str, str]:
    """Name the two parts of a variant of the wave equation."""
    step, _, exchange = form.rpartition(", ")
    names = {"": "C" if module == "c" else "slices", "inplace": "slices, in place", "numba": "Numba"}
    return names.get(step, step), exchange


def _form_order(form: str) -> tuple[bool, str]:
    return ("," in form, form)


def _against_c(time: float | None, in_c: float | None) -> str:
    if time is None:
        return "-"
    return seconds(time) + (f" ({number(time / in_c)} x C)" if in_c else "")


def ratios(found: Times, libraries: dict[str, str]) -> Table | None:
    """Compare every module with mpi4py on the same library.

    Cells are geometric means over all points of a kernel, the worst in brackets.
    """
    benches = [bench for bench in TITLES if any(point.bench == bench for point in found)]
    table = Table(
        "Time divided by that of mpi4py (buffers) on the same library: geometric mean over all points, the worst in "
        "brackets",
        ["module", "library", *(TITLES[bench] for bench in benches)],
        words=2,
    )
    for who in contenders(found):
        if who.module == REFERENCE:
            continue
        reference = Contender(who.library, REFERENCE)
        measured = [ratio(own_times(found, bench, who), own_times(found, bench, reference)) for bench in benches]
        if any(measured):
            cells = [f"{value.mean:.2f} ({value.worst:.2f})" if value else "-" for value in measured]
            table.rows.append([*_names(who, libraries), *cells])
    return table if table.rows else None


def mesh_of(bench: str, mesh: int) -> str:
    """Write the size of an application."""
    return {"inner": f"{mesh} elements", "wave3d": f"{mesh}^3 points"}.get(bench, f"{mesh}^2 points")


def _names(who: Contender, libraries: dict[str, str]) -> Sequence[str]:
    return MODULES[who.module], libraries[who.library]
