"""What ``limosa tune`` says: tables of entries, of what was dropped, and of violated guidelines. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limosa_lab.model.fitting import Point
from limosa_lab.tables import Table
from limosa_lab.tune.consistency import MARGIN, violations
from limosa_lab.tune.rules import Entry, Measured
from limosa_lab.tune.verdict import THREADED, Agreement, Cases, counting, is_slower, kind_of, level_of, mean_ratio
from limosa_lab.wording import size

# A case is noisy if repetitions differ by this part of the time, a machine if this part of the cases is.
NOISY = 0.1
NOISY_SHARE = 0.2
# Calls that are listed as slower.
LOSSES = 12
# Bytes from which on calls are listed one by one.
LONG = 16 << 10


def entries(title: str, kept: Sequence[Entry]) -> Table:
    """Give the entries with the gains that were predicted and measured."""
    columns = [
        "operation",
        "done by",
        "p",
        "from",
        "to",
        "threads",
        "predicted gain",
        "model error",
        "measured gain",
        "at",
        "noise",
    ]
    table = Table(f"{title}: what is done otherwise", columns, words=2)
    for entry in kept:
        best = max(entry.evidence, key=lambda case: case.gain, default=None)
        found = [_percent(best.gain), size(best.bytes), _percent(best.noise)] if best else ["-", "-", "-"]
        predicted = entry.predicted_at(best.bytes) if best else entry.predicted
        table.rows.append([*_where(entry), _percent(predicted), _percent(entry.error), *found])
    return table


def dropped(title: str, entries: Iterable[tuple[Entry, str]]) -> Table:
    """Give the entries that were predicted and do not hold."""
    columns = ["operation", "done by", "p", "from", "to", "threads", "predicted gain", "why not"]
    table = Table(f"{title}: predicted, and dropped", columns, words=2)
    for entry, reason in entries:
        table.rows.append([*_where(entry), _percent(entry.predicted), reason])
    return table


def consistency(title: str, measured: Mapping[str, Sequence[Point]]) -> Table:
    """Give the guidelines that a library violates."""
    columns = ["guideline", "p", "from", "to", "sizes", "times as long", "at"]
    table = Table(f"{title}: takes more than {MARGIN:g} times as long as a combination of others", columns, words=1)
    for found in violations(measured):
        table.rows.append([
            str(found.guideline),
            str(found.ranks),
            size(found.low),
            size(found.high),
            f"{found.violated} of {found.sizes}",
            f"{found.factor:.2f}",
            size(found.at),
        ])  # fmt: skip
    return table


def answer(title: str, kept: Sequence[Entry], measured: Cases) -> str:
    """Say what tuning has brought, in a sentence."""
    changed = _changed(kept, measured)
    if not changed:
        return f"{title}: nothing is done otherwise."
    every = list(measured.values())
    return (
        f"{title}: {len(changed)} of {len(every)} measured cases are done otherwise. They take "
        f"{mean_ratio(changed):.3f} of the time (geometric mean; {slower(kept, measured)} are slower beyond the "
        f"noise), all cases {mean_ratio(every):.3f}."
    )


def programs(title: str, kept: Sequence[Entry], measured: Cases) -> Table:
    """Give the times of calls that are replaced and of all others, by the kind of program."""
    columns = ["program", "replaced", "their time", "slower", "not replaced", "their time", "slower"]
    table = Table(f"{title}: calls in programs, with the file by without it", columns, words=1)
    for kind in dict.fromkeys(kind_of(name) for name, _, _ in measured):
        row = [kind]
        for is_replaced in (True, False):
            own = [
                case
                for key, case in measured.items()
                if kind_of(key[0]) == kind and (counting(kept, *key) is not None) == is_replaced
            ]
            row += [str(len(own)), f"{mean_ratio(own):.3f}" if own else "-", str(sum(map(is_slower, own)))]
        table.rows.append(row)
    return table


def long_calls(title: str, kept: Sequence[Entry], measured: Cases) -> Table:
    """Give the times of long calls in C, each by itself with root 0, before and after, at powers of four."""
    alone = {key: case for key, case in measured.items() if "@" not in key[0].removesuffix(THREADED)}
    powers = sorted({n for _, _, n in alone if n >= LONG and n.bit_count() == 1 and n.bit_length() % 2})
    columns = ["operation", "threads", "p", *map(size, powers)]
    table = Table(f"{title}: us of a call before and after; * replaced", columns, words=2)
    for name, p in dict.fromkeys((name, p) for name, p, n in alone if n in powers):
        cells = []
        for n in powers:
            case = alone.get((name, p, n))
            mark = " *" if counting(kept, name, p, n) else ""
            cells.append(f"{case.before:.3g}, {case.after:.3g}{mark}" if case else "-")
        table.rows.append([name.partition("@")[0], level_of(name), str(p), *cells])
    return table


def losses(title: str, kept: Sequence[Entry], measured: Cases) -> Table:
    """Give the calls that take longer with the file, by more than the noise: the largest losses."""
    slow = sorted(((key, case) for key, case in measured.items() if is_slower(case)), key=lambda found: found[1].gain)
    columns = ["operation", "done by", "p", "bytes", "program", "us before", "us after", "noise"]
    shown = slow[:LOSSES]
    table = Table(f"{title}: slower beyond the noise, {len(shown)} of {len(slow)} calls", columns, words=2)
    for (name, p, n), case in shown:
        entry = counting(kept, name, p, n)
        by = (entry.way.partition(" = ")[2] or entry.way) if entry else "itself"
        times = [f"{case.before:.2f}", f"{case.after:.2f}", _percent(case.noise)]
        table.rows.append([name.partition("@")[0], by, str(p), size(n), kind_of(name), *times])
    return table


def agreement(title: str, found: Agreement, cases: int) -> str:
    """Say how far two tunings agree."""
    agreed = cases - len(found.different)
    changed = found.alike + found.within_noise
    text = (
        f"{title}: the tunings agree at {agreed} of {cases} sizes ({_percent(agreed / max(cases, 1))}). Of "
        f"{found.changed} that either changes, they decide alike at {found.alike}, and otherwise within the noise at "
        f"{found.within_noise} ({_percent(changed / max(found.changed, 1))} together)."
    )
    where = [(name.partition("@")[0], size(n), p, level_of(name)) for name, p, n in found.different[:8]]
    shown = ", ".join(f"{name} of {n} ({p} ranks, threads: {level})" for name, n, p, level in where)
    more = f" and {len(found.different) - 8} more" if len(found.different) > 8 else ""
    return text + (f" Different: {shown}{more}." if shown else "")


def doubts(title: str, measured: Cases) -> list[str]:
    """Say if the machine was too noisy for a check."""
    noisy = sum(case.noise > NOISY for case in measured.values())
    if noisy <= NOISY_SHARE * len(measured):
        return []
    return [
        f"{title}: in {noisy} of {len(measured)} cases repetitions differ by more than {_percent(NOISY)}: the machine "
        "is too noisy, and gains below that are not found; stop other programs, or take more --minutes"
    ]


def slower(kept: Sequence[Entry], measured: Cases) -> int:
    """Count the cases that are done otherwise and take longer, by more than the noise."""
    return sum(map(is_slower, _changed(kept, measured)))


def _changed(kept: Sequence[Entry], measured: Cases) -> list[Measured]:
    return [case for (name, p, n), case in measured.items() if counting(kept, name, p, n)]


def _where(entry: Entry) -> list[str]:
    by = entry.way.partition(" = ")[2] or entry.way
    limits = [size(entry.low), "any" if entry.high is None else size(entry.high)]
    return [entry.operation, by, str(entry.ranks), *limits, entry.level or "any"]


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"
