"""How figures look: colours and marks of the libraries, ticks in units that people read. Pure functions on axes."""

import io
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from limosa_lab.wording import number, seconds, size

# Colours that people with colour blindness can tell apart (Okabe and Ito), and marks.
STYLES = {
    "limosa": ("#D55E00", "o"),
    "before": ("#E69F00", "."),
    "mpich": ("#0072B2", "s"),
    "openmpi": ("#009E73", "^"),
    "intel": ("#CC79A7", "D"),
}
OTHER = ("#555555", "x")


def style(library: str) -> dict[str, Any]:
    """Give the colour, mark and line of a library for a plot."""
    colour, mark = STYLES.get(library, OTHER)
    return {"color": colour, "marker": mark, "linewidth": 1.4}


def size_ticks(axes: Axes, sizes: Iterable[float]) -> None:
    """Mark a horizontal axis of message sizes: 8 B, 64 KB, 4 MB."""
    ticks = sorted(set(sizes))
    if len(ticks) > 8:
        usual = (0, 1, 8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 128 << 20)
        ticks = [value for value in usual if ticks[0] <= value <= ticks[-1]]
    axes.set_xticks(ticks, [size(int(value)) for value in ticks], rotation=45, fontsize="small")
    axes.minorticks_off()


def time_ticks(axis: Axis, unit: float = 1.0) -> None:
    """Mark an axis of times in seconds, or in so many of them: 1 us, 10 us, 1 ms."""
    _ticks(axis, lambda value: seconds(unit * value) if value else "0")


def number_ticks(axis: Axis) -> None:
    """Mark an axis of numbers: 0.5, 20, 10,000."""
    _ticks(axis, lambda value: f"{value:,.0f}" if abs(value) >= 1000 else number(value))


def count_ticks(axes: Axes, counts: Iterable[int]) -> None:
    """Mark a horizontal, logarithmic axis of numbers of processes: 2, 64, 2,048."""
    ticks = sorted(set(counts))
    ticks = ticks[:: -(-len(ticks) // 8)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize="small")
    axes.minorticks_off()


def svg(figure: Figure) -> str:
    """Write a figure as an SVG element for a page, its text as text; it is closed."""
    import matplotlib.pyplot as plt

    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": str(figure.number)}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]


def _ticks(axis: Axis, written: Callable[[float], str]) -> None:
    """Write the ticks like this; a logarithmic axis has them at 1, 2 and 5, or at 1 alone if it is long."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    if axis.get_scale() != "log":
        return
    low, high = sorted(axis.get_view_interval())
    steps = (1.0,) if high > 100 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=20))
    axis.set_minor_formatter(NullFormatter())
