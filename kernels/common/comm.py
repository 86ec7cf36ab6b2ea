"""The communication layer: what the kernels ask of a message-passing module, the same for all of them.

`communication` gives the layer of a module by its name; each is a file ``comm_NAME.py`` beside this one, written as the module's
own users would write it. The numerics of a kernel are the same whichever is chosen.

All arrays are C-contiguous float64 unless said otherwise; what is received is received in place. Calls block, and collectives
must be called by all processes.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np

from common.decomposition import Block

FACE_TAG = 100


class Halo(ABC):
    """Keeps the ghost layers of a block's arrays up to date. Made by `Communication.halo`."""

    @abstractmethod
    def exchange(self, u: np.ndarray) -> None:
        """Fill the ghost layers of `u` from the neighbours; beyond a wall nothing is changed. Corners are not transferred."""

    def start(self, u: np.ndarray) -> Callable[[], None]:
        """Begin what `exchange` does; the function that is given completes it. `u`'s own points may be read meanwhile.

        Raises
        ------
        NotImplementedError
            If the module has no non-blocking calls.

        """
        raise NotImplementedError


class OrderedHalo(Halo):
    """Exchange for modules without a combined send and receive, and without a null process.

    Along each axis the blocks at even places deal with the neighbour above first, the others with the one below. Of two
    partners one sends first and the other receives first, so nothing depends on how much the module buffers.
    """

    def __init__(self, module: Communication, block: Block) -> None:
        self._steps: list[Callable[[np.ndarray], None]] = []
        for axis, (below, above) in enumerate(block.neighbours):
            even = block.coords[axis] % 2 == 0
            order = ((above, -2, -1), (below, 1, 0)) if even else ((below, 1, 0), (above, -2, -1))
            for partner, own, ghost in order:
                if partner is not None:
                    self._add(module, block, axis, partner, own, ghost, send_first=even)

    def _add(self, module: Communication, block: Block, axis: int, partner: int, own: int, ghost: int, send_first: bool) -> None:
        out, into = block.layer(axis, own), block.layer(axis, ghost)
        shape = tuple(points for at, points in enumerate(block.shape) if at != axis)
        room = np.empty(shape)
        up, down = FACE_TAG + 2 * axis, FACE_TAG + 2 * axis + 1  # a message's tag says in which direction it travels
        send_tag, receive_tag = (up, down) if own == -2 else (down, up)

        def send(u: np.ndarray) -> None:
            module.send_face(u[out], partner, send_tag)

        def receive(u: np.ndarray) -> None:
            u[into] = module.receive_face(room, partner, receive_tag)

        self._steps += [send, receive] if send_first else [receive, send]

    def exchange(self, u: np.ndarray) -> None:
        """Fill the ghost layers of `u`."""
        for step in self._steps:
            step(u)


class Communication(ABC):
    """A message-passing module, as far as the kernels need it.

    Attributes
    ----------
    name
        Name of the module, as ``--comm`` takes it.
    rank, size
        This process's number and how many there are.
    nonblocking
        Whether `Halo.start` works.

    """

    name: str
    rank: int
    size: int
    nonblocking = False

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all processes are here."""

    @abstractmethod
    def send(self, values: np.ndarray, to: int) -> None:
        """Send an array."""

    @abstractmethod
    def receive(self, values: np.ndarray, source: int) -> None:
        """Receive an array of the shape of `values` into it."""

    @abstractmethod
    def broadcast(self, values: np.ndarray) -> None:
        """Fill `values` everywhere with what process 0 has in it."""

    @abstractmethod
    def reduce(self, values: np.ndarray, result: np.ndarray) -> None:
        """Put the sum over all processes, element by element, into `result` on process 0; elsewhere it may be touched."""

    @abstractmethod
    def allreduce(self, values: np.ndarray, result: np.ndarray) -> None:
        """Put the sum over all processes, element by element, into `result` everywhere."""

    @abstractmethod
    def total(self, value: float) -> float:
        """Give the sum of one number per process, on all of them."""

    @abstractmethod
    def total_on_root(self, value: float) -> float | None:
        """Give the sum of one number per process on process 0, None elsewhere."""

    @abstractmethod
    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        """Collect one flat array per process, of known sizes, on process 0; None elsewhere. Any type of numbers."""

    def halo(self, block: Block) -> Halo:
        """Prepare the exchange of ghost layers for a block."""
        return OrderedHalo(self, block)

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        """Send one face, which may be a non-contiguous view (used by `OrderedHalo`)."""
        raise NotImplementedError

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        """Give a face that arrives; `room` may be used for it (used by `OrderedHalo`)."""
        raise NotImplementedError

    def gather_numbers(self, value: float) -> list[float] | None:
        """Collect one number per process on process 0."""
        pieces = self.gather(np.array([value]), [1] * self.size)
        return None if pieces is None else [float(piece[0]) for piece in pieces]

    def library(self) -> str:
        """Name the MPI library below, in one line."""
        from mpi4py import MPI

        return MPI.Get_library_version().strip("\0 \n").splitlines()[0]


def modules() -> list[str]:
    """Names of the modules for which there is a layer."""
    return sorted(file.stem.removeprefix("comm_") for file in Path(__file__).parent.glob("comm_*.py"))


def communication(name: str) -> Communication:
    """Give the layer of a module; importing it starts MPI.

    Raises
    ------
    ValueError
        If there is no layer of this name.
    ImportError
        If the module, or something it needs, is not installed.

    """
    if name not in modules():
        raise ValueError(f"there is no communication layer for `{name}`; known: {', '.join(modules())}")
    layer: type[Communication] = importlib.import_module(f"common.comm_{name}").Layer
    return layer()
