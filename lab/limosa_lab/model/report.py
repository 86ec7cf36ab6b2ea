"""The report of fitted models: tables for a terminal, and one page of HTML with figures. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from limosa_lab import html_page, studies
from limosa_lab.model import equivalents, metrics
from limosa_lab.model.growth import Growth
from limosa_lab.model.library import ACCURACY, Interval, Operation, models
from limosa_lab.model.samples import TURNS, VALIDATION, calls_of, title
from limosa_lab.records import Recording
from limosa_lab.tables import Table, troubles
from limosa_lab.wording import listed, number, size

Libraries = Mapping[str, Mapping[str, Operation]]
# More processors than any measurement has ranks: for records that do not say how many there were.
MANY = 1 << 20

INTRODUCTION = (
    "Each operation was measured call by call; the slowest rank counts. Its time is the statistic in the table, of the "
    "calls of a round, and of these the mean of the two least rounds, or the median with more ranks than processors. "
    "Operations with a root were measured with root 0, as in most programs, and with roots by turns. Models were "
    "fitted to messages of 0 bytes, of powers of two, of odd sizes "
    "between these, and of further ones where these do not lie on a line. Calls of collective operations without bytes "
    "that return at once are no messages and are left out. In brackets: intervals of 95 % confidence. "
    "Their error is that of "
    f"{VALIDATION} random messages which they were not fitted to: the mean of |predicted - measured| / measured."
)


COLUMNS = (
    "operation",
    "t0(p) in us",
    "i(p) in us",
    "tb(p) in ns/byte",
    "specific performance in KB/s",
    "bandwidth in MB/s",
)


def parameters(recording: Recording, fitted: Libraries) -> list[Table]:
    """Give the parameters and metrics in the layout of the source's tables 1 to 4, a table for each library."""
    made = []
    for library, operations in fitted.items():
        table = Table(
            f"{recording.titles()[library]}: the linear model with a protocol term, and peak aggregated metrics",
            list(COLUMNS),
            words=1,
        )
        for operation in operations.values():
            table.rows.append(_parameters(operation))
        made.append(table)
    return made


def _parameters(operation: Operation) -> list[str]:
    numbers = sorted({point.p for point in operation.measured})
    model, bench = operation.protocol, operation.name.removesuffix(TURNS)
    if model is None:
        times = {p: operation.best.time(0, p) for p in numbers}
        peak = 0.0
        if bench in metrics.FACTORS:
            peak = metrics.peak(metrics.specific_performance(bench, Growth(times[p]), p) for p in numbers)
        t0 = getattr(operation.best, "t0", None) or ", ".join(f"{time:.3g} (p={p})" for p, time in times.items())
        return [title(operation.name), str(t0), "-", "-", number(peak), "-"]
    cells = [
        title(operation.name),
        _with_intervals(model.t0, "t0", operation.intervals),
        _with_intervals(model.intercept, "intercept", operation.intervals),
        _with_intervals(model.tb, "tb", operation.intervals, 1e3),
    ]
    if bench not in metrics.FACTORS:
        return [*cells, "-", "-"]
    specific = metrics.peak(metrics.specific_performance(bench, model.t0, p) for p in numbers)
    bandwidth = metrics.peak(metrics.asymptotic_bandwidth(bench, model.tb, p) for p in numbers)
    return [*cells, number(specific), number(bandwidth)]


def _with_intervals(growth: Growth, name: str, intervals: Mapping[str, Interval], unit: float = 1.0) -> str:
    """Write a parameter and, in brackets, the intervals of its numbers: ``12+8⌈lp⌉ (11..13; 7.6..8.4)``."""
    found = [intervals.get(f"{name}.{part}") for part in ("a", f"b {growth.kind}")]
    written = [f"{low * unit:.4g}..{high * unit:.4g}" for low, high in (one for one in found if one)]
    return f"{growth.scaled(unit)} ({'; '.join(written)})" if written else str(growth.scaled(unit))


def accuracy(recording: Recording, fitted: Libraries) -> Table:
    """Give the errors of Hockney's model, of the protocol term and of the best model."""
    processors = int(recording.environment.get("processors", MANY))
    most = max((point.p for ops in fitted.values() for one in ops.values() for point in one.measured), default=0)
    columns = ["library", "operation", "times", "Hockney", "protocol term", "best model", "its error"]
    table = Table(
        "Mean absolute relative error of random messages, in percent; ! above "
        f"{100 * ACCURACY:.0f} %; {processors} processors",
        [*columns, f"p <= {processors}", f"p > {processors}", "at its worst"],
        words=3,
    )
    for library, operations in fitted.items():
        for operation in operations.values():
            if operation.error is None:
                continue
            bench = operation.name.removesuffix(TURNS)
            cells = [recording.titles()[library], title(bench), calls_of(operation.name, operation.statistic)]
            cells += [_percent(operation.errors.get(name)) for name in ("Hockney", "protocol term")]
            cells += [operation.best.name, _judged(operation.error)]
            cells += [_judged(operation.error_among(range(processors + 1)))]
            cells += [_judged(operation.error_among(range(processors + 1, most + 1)))]
            worst = operation.worst()
            cells += [f"{100 * worst[1]:+.0f} at {size(worst[0].n)}, p = {worst[0].p}" if worst else "-"]
            table.rows.append(cells)
    return table


def guidelines(recording: Recording, fitted: Libraries) -> Table:
    """Give the combinations of operations that are predicted to be faster than one operation, beyond the error."""
    table = Table(
        "Operations that take longer than a combination of others, by the models",
        ["library", "guideline", "p", "from", "to", "saves up to"],
        words=2,
    )
    for library, operations in fitted.items():
        of_operation = models(operations)
        for guideline in equivalents.GUIDELINES:
            names = {guideline.operation, *(part.operation for part in guideline.parts)}
            if not names <= of_operation.keys():
                continue
            least = sum(operations[name].error or 0.0 for name in names)
            whole = operations[guideline.operation].measured
            largest = max((point.n for point in whole), default=0)
            for p in sorted({point.p for point in whole}):
                for found in equivalents.crossings(guideline, of_operation, p, 1, max(largest, 2), least):
                    limits = [size(round(found.low)), "any" if found.high is None else size(round(found.high))]
                    table.rows.append(
                        [recording.titles()[library], str(guideline), str(p), *limits, f"{100 * found.gain:.0f} %"]
                    )
    return table


def answer(recording: Recording, fitted: Libraries) -> str:
    """Say in one or two sentences how well the models predict."""
    all_of_them = [operation for operations in fitted.values() for operation in operations.values()]
    known = [operation for operation in all_of_them if operation.error is not None]
    if not known:
        return "No random messages were measured, so the models' errors are not known."
    within = [operation for operation in known if (operation.error or 0) <= ACCURACY]
    mean = sum(operation.error or 0 for operation in known) / len(known)
    hockney = [operation.errors["Hockney"] for operation in known if "Hockney" in operation.errors]
    titles = listed([recording.titles()[library] for library in fitted])
    text = (
        f"The best models of {titles} predict the {known[0].statistic} time of random messages with a mean error of "
        f"{100 * mean:.1f} %; "
        f"{len(within)} of {len(known)} are within {100 * ACCURACY:.0f} %."
    )
    by_turns = [operation.error or 0 for operation in known if operation.name.endswith(TURNS)]
    if by_turns:
        text += f" With roots by turns the mean error is {100 * sum(by_turns) / len(by_turns):.1f} %."
    if hockney:
        text += f" Hockney's model: {100 * statistics.median(hockney):.0f} %, in the median over the operations."
    processors = int(recording.environment.get("processors", MANY))
    few = [operation.error_among(range(processors + 1)) for operation in known]
    errors = [error for error in few if error is not None]
    if errors and {point.p for operation in known for point in operation.validation if point.p > processors}:
        text += (
            f" With no more processes than processors: {100 * sum(errors) / len(errors):.1f} %, "
            f"{sum(error <= ACCURACY for error in errors)} of {len(errors)} within {100 * ACCURACY:.0f} %."
        )
    return text


def tables(recording: Recording, fitted: Libraries) -> list[Table]:
    """Give all tables."""
    made = [accuracy(recording, fitted), *parameters(recording, fitted), guidelines(recording, fitted)]
    return [table for table in made if table.rows]


def text(recording: Recording, fitted: Libraries, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal."""
    parts = [table.text(width, colour) for table in tables(recording, fitted)]
    parts += [f"warning: {trouble}\n" for trouble in troubles(recording)]
    return "\n".join([*parts, answer(recording, fitted) + "\n"])


def page(recording: Recording, fitted: Libraries) -> str:
    """Give the report as a page of HTML."""
    from limosa_lab.model import figures

    environment = recording.environment
    machine = f"{environment['cpu']}, {environment['processors']} processors, {environment['time']}."
    parts = ["<h1>What communication costs</h1>", html_page.paragraph(answer(recording, fitted), "answer")]
    parts += [html_page.paragraph(f"{INTRODUCTION} {machine}", "small")]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in troubles(recording)]
    drawn = [html_page.figure(name, svg) for name, svg in figures.draw(recording, fitted).items()]
    parts += ["<h2>Measured and predicted</h2>", f'<div class="figures">{"".join(drawn)}</div>']
    parts += ["<h2>Tables</h2>", *map(html_page.table, tables(recording, fitted))]
    return html_page.document("What communication costs", parts)


def write(recording: Recording, fitted: Libraries, folder: Path) -> list[Path]:
    """Write `report.html` and `report.txt`; give the files."""
    return studies.write(page(recording, fitted), text(recording, fitted), folder)


def _judged(value: float | None) -> str:
    return _percent(value) + (" !" if value is not None and value > ACCURACY else "")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
