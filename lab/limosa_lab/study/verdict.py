"""What a study found, in sentences and numbers: only what is beyond the noise. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from limosa_lab.study.plan import COUNTERPARTS, MODULES
from limosa_lab.study.results import (
    MICRO,
    REFERENCE,
    Contender,
    Spread,
    Times,
    contenders,
    corresponding_times,
    micro,
    own_times,
    ratio,
)
from limosa_lab.study.tables import TITLES
from limosa_lab.wording import listed, number, seconds, size

LIMIT = 2.0
"""No dialect shall take longer than so many times what mpi4py takes."""

APPLICATIONS = tuple(bench for bench in TITLES if bench not in MICRO)


@dataclass(frozen=True)
class Factor:
    """How many times a reference's time a contender takes, and between what numbers noise may move that."""

    mean: float
    low: float
    high: float


def factor(
    found: Times, spread: Spread, benches: tuple[str, ...], who: Contender, *, own: bool = True
) -> Factor | None:
    """Compare a contender with mpi4py on the same library: with the calls for buffers, or with those like its own."""

    def mean(mine: Times, others: Times) -> float | None:
        reference = Contender(who.library, REFERENCE)
        pairs = [
            (own_times(mine, bench, who), own_times(others, bench, reference))
            if own
            else (own_times(mine, bench, who), corresponding_times(others, bench, who))
            for bench in benches
        ]
        value = ratio(
            {point: time for times, _ in pairs for point, time in times.items()},
            {point: time for _, times in pairs for point, time in times.items()},
        )
        return value.mean if value else None

    values = [mean(found, found), mean(spread.low, spread.high), mean(spread.high, spread.low)]
    return Factor(*values) if None not in values else None  # type: ignore[arg-type]


def answer(found: Times, spread: Spread, libraries: dict[str, str]) -> str:
    """Say in one sentence what a small message takes and whether an application notices the module."""
    said = [part for part in (_messages(found, libraries), _applications(found, spread, libraries)) if part]
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _first(found: Times, libraries: dict[str, str]) -> str | None:
    """Give the library that is spoken of: the first one with results."""
    return next((name for name in libraries if any(who.library == name for who in contenders(found))), None)


def _messages(found: Times, libraries: dict[str, str]) -> str:
    library = _first(found, libraries)
    by = {who.module: micro(found, "pingpong", 2, who) for who in contenders(found) if who.library == library}
    by = {module: times for module, times in by.items() if times}
    if library is None or not by:
        return ""
    least = min(min(times) for times in by.values())
    small = {module: times[least] for module, times in by.items() if least in times}
    named = [
        f"{seconds(small[name])} {words}"
        for name, words in (("c", "in C"), (REFERENCE, "with mpi4py"))
        if name in small
    ]
    rest = sorted(time for module, time in small.items() if module not in {"c", REFERENCE})
    if rest:
        between = seconds(rest[0]) if len(rest) == 1 else f"{seconds(rest[0])} to {seconds(rest[-1])}"
        named.append(f"{between} with the other {'modules' if len(rest) > 1 else 'module'}")
    return f"a message of {size(least)} on {libraries[library]} takes {listed(named)}"


def _applications(found: Times, spread: Spread, libraries: dict[str, str]) -> str:
    library = _first(found, libraries)
    others = [who for who in contenders(found) if who.library == library and who.module not in {"c", REFERENCE}]
    factors = {who.module: factor(found, spread, APPLICATIONS, who) for who in others}
    known = {module: value for module, value in factors.items() if value}
    if not known:
        return ""
    slower = [f"{MODULES[module]} ({number(value.mean)} times)" for module, value in known.items() if value.low > 1]
    faster = [f"{MODULES[module]} ({number(value.mean)} times)" for module, value in known.items() if value.high < 1]
    parts = [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} {word} than mpi4py"
        for names, word in ((slower, "slower"), (faster, "faster"))
        if names
    ]
    return (
        f"in the applications {listed(parts)}"
        if parts
        else "in the applications no module differs from mpi4py by more than the noise"
    )


def sentences(found: Times, spread: Spread, libraries: dict[str, str]) -> list[str]:
    """Say which modules keep within the limit against the corresponding calls of mpi4py, by library."""
    said = []
    for library, title in libraries.items():
        slow, good = [], []
        for who in contenders(found):
            if who.library != library or who.module not in COUNTERPARTS:
                continue
            factors = {bench: factor(found, spread, (bench,), who, own=False) for bench in TITLES}
            known = {bench: value for bench, value in factors.items() if value}
            beyond = [
                f"{value.mean:.2f} times in {TITLES[bench]}" for bench, value in known.items() if value.low > LIMIT
            ]
            if beyond:
                slow.append(f"{MODULES[who.module]} ({', '.join(beyond)})")
            elif known:
                good.append(MODULES[who.module])
        if good:
            said.append(
                f"On {title}, at most {LIMIT:g} times the time of the corresponding calls of mpi4py in every kernel: "
                f"{', '.join(good)}."
            )
        if slow:
            said.append(
                f"On {title}, more than {LIMIT:g} times the time of the corresponding calls of mpi4py: "
                f"{'; '.join(slow)}."
            )
    if said:
        said.append(
            "Numbers are geometric means over all points; only what is beyond the noise counts. Corresponding calls "
            "are those for objects (lower case) for pyMPI and boostmpi, those for buffers for the others. pypar and "
            "MYMPI have no allreduce; they reduce and broadcast, and are compared with that."
        )
    return said
