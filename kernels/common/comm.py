"""The communication layer: what the kernels ask of a message-passing module, the same for all of them.

`communication` gives the layer of a module by its name; each is a file ``comm_NAME.py`` beside this one, written as the
module's own users would write it. The numerics of a kernel are the same whichever is chosen.

Arrays are C-contiguous float64 unless said otherwise. Modules either fill an array they are given or return a new one:
the caller gives a `room` of the right shape, which may be used or not, and takes what is returned. Calls block, and
collectives must be called by all processes.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.decomposition import Block

FACE_TAG = 100


class Halo(ABC):
    """Keeps the ghost layers of a block's arrays up to date. Made by `Communication.halo`."""

    @abstractmethod
    def exchange(self, u: np.ndarray) -> None:
        """Fill the ghost layers of `u` from the neighbours, without corners; beyond a wall nothing is changed."""

    def start(self, u: np.ndarray) -> Callable[[], None]:
        """Begin what `exchange` does; the function that is given completes it. `u`'s own points may be read meanwhile.

        Raises
        ------
        NotImplementedError
            If the module has no non-blocking calls.

        """
        raise NotImplementedError


@dataclass(frozen=True)
class Face:
    """A side of a block that has a neighbour.

    Attributes
    ----------
    partner
        The neighbour's rank.
    own, ghost
        Indices of the layer that is sent and of the one that is received, in a padded array.
    shape
        Shape of both.
    send_tag, receive_tag
        Tags of the messages there and back: a tag says in which direction a message travels.
    send_first
        If calls block, one of two partners should send first, and its partner receive first.

    """

    partner: int
    own: tuple[int | slice, ...]
    ghost: tuple[int | slice, ...]
    shape: tuple[int, ...]
    send_tag: int
    receive_tag: int
    send_first: bool


def faces(block: Block) -> list[Face]:
    """List the sides of a block that have neighbours.

    Along each axis, blocks at even places have the side above first and the others the one below, so that partners meet
    if all deal with their sides in this order.
    """
    found = []
    for axis, (below, above) in enumerate(block.neighbours):
        shape = tuple(points for at, points in enumerate(block.shape) if at != axis)
        up, down = FACE_TAG + 2 * axis, FACE_TAG + 2 * axis + 1
        even = block.coords[axis] % 2 == 0
        sides = [(above, -2, -1, up, down), (below, 1, 0, down, up)]
        for partner, own, ghost, send_tag, receive_tag in sides if even else reversed(sides):
            if partner is not None:
                found.append(
                    Face(partner, block.layer(axis, own), block.layer(axis, ghost), shape, send_tag, receive_tag, even)
                )
    return found


class OrderedHalo(Halo):
    """Exchange for modules without a combined send and receive, and without a null process.

    One of two partners sends first, and its partner receives first, so nothing depends on how much the module buffers.
    """

    def __init__(self, module: Communication, block: Block) -> None:
        self._module = module
        self.faces = [(face, np.empty(face.shape)) for face in faces(block)]

    def exchange(self, u: np.ndarray) -> None:
        """Fill the ghost layers of `u`."""
        module = self._module
        for face, room in self.faces:
            if face.send_first:
                module.send_face(u[face.own], face.partner, face.send_tag)
            u[face.ghost] = module.receive_face(room, face.partner, face.receive_tag)
            if not face.send_first:
                module.send_face(u[face.own], face.partner, face.send_tag)


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
    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        """Give an array that arrives, of the shape of `room`."""

    @abstractmethod
    def broadcast(self, values: np.ndarray) -> np.ndarray:
        """Give everywhere what `values` is on process 0. `values` has the same shape everywhere and may be filled."""

    @abstractmethod
    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        """Give the sum over all processes, element by element, on process 0; elsewhere the result has no meaning."""

    @abstractmethod
    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Give the sum over all processes, element by element, everywhere."""

    @abstractmethod
    def total(self, value: float) -> float:
        """Give the sum of one number per process, on all of them."""

    @abstractmethod
    def total_on_root(self, value: float) -> float | None:
        """Give the sum of one number per process on process 0, None elsewhere."""

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        """Collect one flat array per process, of known sizes, on process 0; None elsewhere. Any type of numbers.

        Here by messages, for modules whose own call needs pieces of the same size.
        """
        if self.rank != 0:
            if values.size:
                self.send(values, 0)
            return None
        pieces = [values]
        for source in range(1, self.size):
            room = np.empty(sizes[source], values.dtype)
            pieces.append(self.receive(room, source) if room.size else room)
        return pieces

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
