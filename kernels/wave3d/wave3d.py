"""The wave equation in three dimensions, on several processes.

Solves ``u_tt = laplace(u)`` on the unit cube with walls that reflect (the derivative across the
boundary is zero), starting at rest from ``2 cos(pi x) cos(pi y) cos(pi z)``:

* explicit scheme with the 7-point star, second order in space and time;
* the cube is cut into blocks, one per process, on a Cartesian grid of processes;
* every block carries one layer of ghost points; before each step the neighbours exchange faces, and
  on the walls the ghost layer is the mirror image of the layer inside.

The start is an eigenfunction of the scheme itself, so its solution is known exactly: each step turns
the phase by ``w dt`` with ``sin(w dt / 2) = sqrt(3) dt/h sin(pi h / 2)``. The program compares the two
and fails if they differ by more than 1e-10 anywhere.

Run it with ``limosa run -n 4 python wave3d.py``, or under any other MPI library's launcher.
"""

import argparse
import contextlib
import math
import os
import sys
import termios
import time

import numpy as np
from mpi4py import MPI

TOLERANCE = 1e-10
PAPER_RUNS = {129: (0.004510, 444), 257: (0.002255, 887)}  # mesh: time step, number of steps


class Block:
    """This process's part of the cube: its own points and one layer of ghost points around them.

    Parameters
    ----------
    n
        Number of mesh points in each direction of the whole cube.
    world
        Communicator of all processes that take part.

    """

    def __init__(self, n, world):
        dims = MPI.Compute_dims(world.size, 3)
        if max(dims) > n:
            grid = " x ".join(map(str, dims))
            raise SystemExit(f"wave3d: {world.size} processes ({grid}) are too many for {n}^3 points" if world.rank == 0 else 1)
        self.n = n
        self.h = 1.0 / (n - 1)
        self.cart = world.Create_cart(dims, periods=[False] * 3)
        ranges = [share(n, parts, part) for parts, part in zip(dims, self.cart.coords, strict=True)]
        self.start = [first for first, _ in ranges]
        self.shape = [last - first for first, last in ranges]
        self.neighbours = [self.cart.Shift(axis, 1) for axis in range(3)]  # (below, above) in each direction
        self.faces = [self._face_types(axis) for axis in range(3)]

    def _face_types(self, axis):
        """Datatypes of the four layers at both ends of an axis: ghost, own, ..., own, ghost."""
        full = [points + 2 for points in self.shape]
        layer = list(self.shape)
        layer[axis] = 1
        types = []
        for place in (0, 1, self.shape[axis], self.shape[axis] + 1):
            corner = [1, 1, 1]
            corner[axis] = place
            types.append(MPI.DOUBLE.Create_subarray(full, layer, corner).Commit())
        return types

    def exchange(self, u):
        """Fill the ghost layers of `u` from the neighbours (beyond a wall there is none: nothing is received)."""
        for (below, above), (low_ghost, low, high, high_ghost) in zip(self.neighbours, self.faces, strict=True):
            self.cart.Sendrecv([u, 1, high], above, 0, [u, 1, low_ghost], below, 0)
            self.cart.Sendrecv([u, 1, low], below, 1, [u, 1, high_ghost], above, 1)

    def reflect(self, u):
        """Fill the ghost layers beyond the walls: the mirror image of the layer inside."""
        for axis, (below, above) in enumerate(self.neighbours):
            layers = np.moveaxis(u, axis, 0)
            if below == MPI.PROC_NULL:
                layers[0] = layers[2]
            if above == MPI.PROC_NULL:
                layers[-1] = layers[-3]

    def mode(self):
        """Give 2 cos(pi x) cos(pi y) cos(pi z) at this block's own points."""
        x, y, z = (np.cos(np.pi * self.h * np.arange(first, first + points)) for first, points in zip(self.start, self.shape, strict=True))
        return 2 * x[:, None, None] * y[None, :, None] * z[None, None, :]

    def gather_slice(self, u, plane=0):
        """Collect the mesh plane z = `plane` of `u` on process 0; the others get None."""
        k = plane - self.start[2]
        piece = u[1:-1, 1:-1, 1 + k] if 0 <= k < self.shape[2] else None
        pieces = self.cart.gather((self.start, piece))
        if pieces is None:
            return None
        picture = np.empty((self.n, self.n))
        for (i, j, _), values in pieces:
            if values is not None:
                picture[i : i + values.shape[0], j : j + values.shape[1]] = values
        return picture

    def free(self):
        """Give the datatypes and the communicator back."""
        for face in self.faces:
            for datatype in face:
                datatype.Free()
        self.cart.Free()


def phase_per_step(h, dt):
    """w dt of the scheme's own solution 2 cos(w t) cos(pi x) cos(pi y) cos(pi z)."""
    return 2 * math.asin(math.sqrt(3) * dt / h * math.sin(math.pi * h / 2))


def share(n, parts, part):
    """First and one-past-last of n points for one of `parts` nearly equal parts."""
    return n * part // parts, n * (part + 1) // parts


def inside(u, axis=None, shift=0):
    """View of a block's own points, shifted by `shift` along `axis`."""
    index = [slice(1, -1)] * 3
    if axis is not None:
        index[axis] = slice(1 + shift, u.shape[axis] - 1 + shift)
    return u[tuple(index)]


def add_star(u, result, weight, work):
    """Add weight * (sum of the six neighbours - 6 u) to `result`, at the block's own points."""
    np.multiply(inside(u), -6.0, out=work)
    for axis in range(3):
        for shift in (-1, 1):
            work += inside(u, axis, shift)
    work *= weight
    result += work


class Clock:
    """Seconds spent in each kind of work."""

    def __init__(self):
        self.seconds = {"computing": 0.0, "communication": 0.0, "checking": 0.0}

    @contextlib.contextmanager
    def time(self, kind):
        """Count the body of a with statement as `kind`."""
        begin = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - begin


def solve(block, dt, steps, check_every, clock, report):
    """Take `steps` steps; give the solution, the largest error seen and the history of the corner's value."""
    courant = (dt / block.h) ** 2
    phase = phase_per_step(block.h, dt)
    mode = block.mode()
    work = np.empty_like(mode)
    error = 0.0
    corner = []  # value at the origin: on the one process that owns it

    def check(u, step):
        nonlocal error
        with clock.time("checking"):
            np.multiply(mode, math.cos(phase * step), out=work)
            np.subtract(work, inside(u), out=work)
            error = np.max([error, work.max(), -work.min()])  # unlike max(), this keeps a NaN

    before = np.zeros([points + 2 for points in block.shape])  # values one step ago
    now = np.zeros_like(before)
    inside(now)[:] = mode
    for step in range(steps):
        if block.start == [0, 0, 0]:
            corner.append(now[1, 1, 1])
        with clock.time("communication"):
            block.exchange(now)
        with clock.time("computing"):
            block.reflect(now)
            after = inside(before)  # the new values take the place of the oldest
            if step == 0:  # at rest: the values before the start equal those after the first step
                after[:] = inside(now)
                add_star(now, after, courant / 2, work)
            else:
                np.negative(after, out=after)
                add_star(now, after, courant, work)
                np.multiply(inside(now), 2.0, out=work)
                after += work
            before, now = now, before
        if (step + 1) % check_every == 0 or step + 1 == steps:
            check(now, step + 1)
        report(step + 1)
    if block.start == [0, 0, 0]:
        corner.append(now[1, 1, 1])
    return now, error, corner


@contextlib.contextmanager
def progress(steps, wanted):
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


def draw(path, picture, corner, dt, phase):
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
    right.set(title="u at the corner (0, 0, 0)", xlabel="t", ylabel="u", xlim=(0, dt * (len(corner) - 1)), ylim=(-2.9, 2.3))
    right.grid(alpha=0.3)
    right.legend(loc="lower center", ncols=2)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def arguments():
    """Read the command line and complete it with the paper's values for the mesh."""
    parser = argparse.ArgumentParser(description="Solve the 3-D wave equation on several processes and check the result.")
    parser.add_argument("--n", type=int, default=129, help="mesh points in each direction (default 129)")
    parser.add_argument("--dt", type=float, help="time step (default: as in the paper for 129 and 257, else just stable)")
    parser.add_argument("--steps", type=int, help="number of steps (default: as in the paper, else until t = 2)")
    parser.add_argument(
        "--check-every", type=int, default=10, metavar="K", help="compare with the exact solution each K steps (default 10)"
    )
    parser.add_argument("--slice-png", metavar="FILE", help="draw the plane z = 0 of the result")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    options = parser.parse_args()
    if options.n < 3:
        parser.error(f"--n {options.n}: at least 3 points are needed in each direction")
    stable = 1 / (options.n - 1) / math.sqrt(3)
    paper_dt, paper_steps = PAPER_RUNS.get(options.n, (0.9999 * stable, None))
    if options.dt is None:
        options.dt = paper_dt
    elif not 0 < options.dt <= stable:
        parser.error(f"--dt {options.dt}: the scheme is stable only up to {stable:.6g} on this mesh")
    if options.steps is None:
        options.steps = paper_steps if paper_steps and options.dt == paper_dt else math.ceil(2 / options.dt)
    if options.steps < 1 or options.check_every < 1:
        parser.error("--steps and --check-every must be at least 1")
    return options


def main():
    """Solve, check, report; the exit code says whether the check passed."""
    world = MPI.COMM_WORLD
    with contextlib.ExitStack() as silence:
        if world.rank != 0:  # one process is enough to explain the options
            nowhere = silence.enter_context(open(os.devnull, "w"))
            silence.enter_context(contextlib.redirect_stdout(nowhere))
            silence.enter_context(contextlib.redirect_stderr(nowhere))
        options = arguments()
    block = Block(options.n, world)
    chief = block.cart.rank == 0
    if chief:
        library = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
        grid = " x ".join(map(str, block.cart.dims))
        print(f"wave3d: {options.n}^3 points, {options.steps} steps of {options.dt:.6f}, {world.size} processes as {grid}")
        print(f"  library                {library}", flush=True)

    clock = Clock()
    with progress(options.steps, chief and not options.no_progress) as report:
        block.cart.Barrier()
        u, error, corner = solve(block, options.dt, options.steps, options.check_every, clock, report)

    error = np.max(block.cart.allgather(error))
    busy = clock.seconds["computing"] + clock.seconds["communication"]
    shares = block.cart.gather(100 * clock.seconds["communication"] / busy)
    busy = block.cart.allreduce(busy, MPI.MAX)
    passed = error <= TOLERANCE
    if chief:
        print(f"  steps per second       {options.steps / busy:.1f}  ({busy:.2f} s for the time steps)")
        print(f"  time in communication  {sum(shares) / len(shares):.1f} % on average, {max(shares):.1f} % at most")
        print(f"  largest error          {error:.2e}  ({'passed' if passed else 'FAILED'}: the limit is {TOLERANCE:.0e})", flush=True)
    if options.slice_png:
        picture = block.gather_slice(u)
        if chief:
            draw(options.slice_png, picture, corner, options.dt, phase_per_step(block.h, options.dt))
            print(f"  picture                {os.path.abspath(options.slice_png)}", flush=True)
    block.free()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
