"""The wave equation in three dimensions, on several processes; `stencil` says which equation and which scheme.

The cube is cut into blocks, one per process. Before each step the neighbours exchange faces; with ``--overlap`` the
points that need no neighbour are computed meanwhile. The program compares with the exact solution of the scheme and
fails if they differ by more than 1e-10 anywhere.

Run it with ``limosa run -n 4 python wave3d.py``, or under any other MPI library's launcher. ``--comm`` chooses the
module that communicates, ``--kernel`` how a step is computed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.comm import Communication
from common.decomposition import Block
from common.program import Kernel, Measurement, RefusalError, main
from wave3d import stencil

TOLERANCE = 1e-10
PAPER_RUNS = {129: (0.004510, 444), 257: (0.002255, 887)}  # mesh: time step, number of steps


class Clock:
    """Seconds spent in each kind of work."""

    def __init__(self) -> None:
        self.seconds = {"computing": 0.0, "communication": 0.0}

    @contextlib.contextmanager
    def time(self, kind: str) -> Iterator[None]:
        """Count the body of a with statement as `kind`."""
        begin = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - begin


class Wave:
    """A block of the cube and its values, now and one step ago.

    Parameters
    ----------
    block
        This process's part of the cube.
    comm
        How its neighbours are reached.
    dt
        Time step.
    kernel
        How a step is computed, a name in `stencil.STEPS`.
    overlap
        Whether faces travel while the inner points are computed.

    """

    def __init__(self, block: Block, comm: Communication, dt: float, kernel: str, overlap: bool) -> None:
        self.block = block
        self.clock = Clock()
        self.steps = 0
        self._halo = comm.halo(block)
        self._step = stencil.STEPS[kernel]()
        self._weight = (dt * (block.n - 1)) ** 2
        self._phase = stencil.phase_per_step(1 / (block.n - 1), dt)
        self._mode = stencil.mode(block)
        self._inner, self._shell = block.inner_and_shell()
        self._advance = self._overlapped if overlap else self._in_order
        self.now, self.before = np.zeros(block.padded), np.zeros(block.padded)
        self._warm_up()
        self.own(self.now)[:] = self._mode
        self.own(self.before)[:] = self._mode

    def own(self, u: np.ndarray) -> np.ndarray:
        """Give the part of a padded array without the ghost layers."""
        return u[1:-1, 1:-1, 1:-1]

    def advance(self) -> None:
        """Take one step."""
        self._advance(self._weight if self.steps else self._weight / 2)
        self.now, self.before = self.before, self.now
        self.steps += 1

    def error(self) -> float:
        """Give the largest difference to the exact solution at this block's points."""
        return float(np.max(np.abs(math.cos(self._phase * self.steps) * self._mode - self.own(self.now))))

    def _in_order(self, weight: float) -> None:
        """Exchange faces, then compute."""
        with self.clock.time("communication"):
            self._halo.exchange(self.now)
        with self.clock.time("computing"):
            stencil.reflect(self.now, self.block)
            self._step(self.now, self.before, weight, self.block.whole)

    def _overlapped(self, weight: float) -> None:
        """Compute what needs no neighbour while the faces travel, then the rest."""
        with self.clock.time("communication"):
            finish = self._halo.start(self.now)
        with self.clock.time("computing"):
            stencil.reflect(self.now, self.block)
            self._step(self.now, self.before, weight, self._inner)
        with self.clock.time("communication"):
            finish()
        with self.clock.time("computing"):
            if 1 in self.block.shape:  # the mirror image of the layer inside is then that of a neighbour's
                stencil.reflect(self.now, self.block)
            for box in self._shell:
                self._step(self.now, self.before, weight, box)

    def _warm_up(self) -> None:
        """Touch all code and memory once: the values are all zero yet, and stay so."""
        self._advance(self._weight)
        self.clock = Clock()


def corner_of(wave: Wave) -> list[float]:
    """Give the value at the origin, on the one process that owns it."""
    return [float(wave.now[1, 1, 1])] if not any(wave.block.start) else []


def slice_of(wave: Wave, comm: Communication) -> np.ndarray | None:
    """Collect the mesh plane z = 0 on process 0; the others get None."""
    n = wave.block.n
    blocks = [Block.of(n, 3, rank, comm.size) for rank in range(comm.size)]
    sizes = [block.shape[0] * block.shape[1] if block.start[2] == 0 else 0 for block in blocks]
    mine = wave.own(wave.now)[:, :, 0].ravel() if wave.block.start[2] == 0 else np.empty(0)
    pieces = comm.gather(mine, sizes)
    if pieces is None:
        return None
    picture = np.empty((n, n))
    for block, size, piece in zip(blocks, sizes, pieces, strict=True):
        if size:
            (i, j, _), (di, dj, _) = block.start, block.shape
            picture[i : i + di, j : j + dj] = piece.reshape(di, dj)
    return picture


@contextlib.contextmanager
def progress(steps: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that shows how many steps are done, on the terminal if there is one.

    A launcher carries the output of its processes through pipes, so standard error is no terminal even
    when a person is looking; the controlling terminal is asked instead.
    """
    try:
        terminal = open("/dev/tty", "w") if wanted else None  # noqa: SIM115
    except OSError:
        terminal = None
    if terminal is None or termios.tcgetattr(terminal)[3] & termios.TOSTOP:  # writing would stop this process
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with terminal, Progress(*columns, console=Console(file=terminal), transient=True) as bar:
        task = bar.add_task("time steps", total=steps)
        yield lambda done: bar.update(task, completed=done)


def draw(path: str, picture: np.ndarray, corner: list[float], dt: float, phase: float) -> None:
    """Draw the slice, and the value at the corner over time beside the exact one."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1, 1.25])
    limit = np.abs(picture).max() or 1.0
    image = left.imshow(picture.T, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=left, label="u")
    left.set(title=f"u(x, y, 0) at t = {dt * (len(corner) - 1):.3f}", xlabel="x", ylabel="y")
    steps = np.arange(len(corner))
    right.plot(steps * dt, 2 * np.cos(phase * steps), color="0.6", linewidth=4, label="exact solution of the scheme")
    right.plot(steps * dt, corner, color="tab:red", linewidth=1.2, label="computed")
    right.set(
        title="u at the corner (0, 0, 0)", xlabel="t", ylabel="u", xlim=(0, dt * (len(corner) - 1)), ylim=(-2.9, 2.3)
    )
    right.grid(alpha=0.3)
    right.legend(loc="lower center", ncols=2)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--n", type=int, default=129, help="mesh points in each direction (default 129)")
    parser.add_argument(
        "--dt", type=float, help="time step (default: as in the paper for 129 and 257, else just stable)"
    )
    parser.add_argument("--steps", type=int, help="number of steps (default: as in the paper, else until t = 2)")
    parser.add_argument(
        "--check-every",
        type=int,
        default=10,
        metavar="K",
        help="compare with the exact solution each K steps (default 10)",
    )
    parser.add_argument(
        "--kernel", choices=list(stencil.STEPS), default="inplace", help="how a step is computed (default inplace)"
    )
    parser.add_argument("--overlap", action="store_true", help="non-blocking: compute while faces travel")
    parser.add_argument("--slice-png", metavar="FILE", help="draw the plane z = 0 of the result")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options and complete them with the paper's values for the mesh."""
    if options.n < 3:
        parser.error(f"--n {options.n}: at least 3 points are needed in each direction")
    stable = stencil.stable_step(options.n)
    paper_dt, paper_steps = PAPER_RUNS.get(options.n, (0.9999 * stable, None))
    if options.dt is None:
        options.dt = paper_dt
    elif not 0 < options.dt <= stable:
        parser.error(f"--dt {options.dt}: the scheme is stable only up to {stable:.6g} on this mesh")
    if options.steps is None:
        options.steps = paper_steps if paper_steps and options.dt == paper_dt else math.ceil(2 / options.dt)
    if options.steps < 1 or options.check_every < 1:
        parser.error("--steps and --check-every must be at least 1")


def title(comm: Communication, options: argparse.Namespace) -> str:
    """Say what will be done."""
    dims = " x ".join(map(str, block_of(comm, options.n).dims))
    return f"{options.n}^3 points, {options.steps} steps of {options.dt:.6f}, {comm.size} processes as {dims}"


def block_of(comm: Communication, n: int) -> Block:
    """Give this process's block."""
    try:
        return Block.of(n, 3, comm.rank, comm.size)
    except ValueError as error:
        raise RefusalError(str(error)) from None


def run(comm: Communication, options: argparse.Namespace, say: Callable[[str, str], None]) -> list[Measurement]:
    """Solve, check, report."""
    block = block_of(comm, options.n)
    if options.overlap and not comm.nonblocking:
        raise RefusalError(f"{comm.name} has no non-blocking calls, so --overlap is not possible with it")
    wave = Wave(block, comm, options.dt, options.kernel, options.overlap)
    corner = corner_of(wave)
    error = 0.0
    with progress(options.steps, comm.rank == 0 and not options.no_progress) as report:
        comm.barrier()
        for step in range(1, options.steps + 1):
            wave.advance()
            corner += corner_of(wave)
            if step % options.check_every == 0 or step == options.steps:
                error = np.max([error, wave.error()])  # unlike max(), this keeps a NaN
            report(step)

    seconds = wave.clock.seconds
    busy = sum(seconds.values())
    errors, times, shares = (
        comm.gather_numbers(value) for value in (error, busy, 100 * seconds["communication"] / busy)
    )
    picture = slice_of(wave, comm) if options.slice_png else None
    if errors is None or times is None or shares is None:
        return []
    error, busy = float(np.max(errors)), max(times)
    right = error <= TOLERANCE
    say("steps per second", f"{options.steps / busy:.1f}  ({busy:.2f} s for the time steps)")
    say("time in communication", f"{sum(shares) / len(shares):.1f} % on average, {max(shares):.1f} % at most")
    say("largest error", f"{error:.2e}  ({'passed' if right else 'FAILED'}: the limit is {TOLERANCE:.0e})")
    if picture is not None:
        draw(options.slice_png, picture, corner, options.dt, stencil.phase_per_step(1 / (options.n - 1), options.dt))
        say("picture", os.path.abspath(options.slice_png))
    x = {"n": options.n, "kernel": options.kernel, "mode": "non-blocking" if options.overlap else "blocking"}
    measured = functools.partial(Measurement, "wave3d", verified=right, x=x)
    return [measured("time", "s", [busy]), measured("communication share", "%", shares)]


KERNEL = Kernel(
    "wave3d",
    "Solve the 3-D wave equation on several processes and check the result.",
    add_options,
    complete,
    title,
    run,
)

if __name__ == "__main__":
    sys.exit(main(KERNEL))
