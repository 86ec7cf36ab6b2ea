"""Communication by Limosa's own interface: one verb for everything, `out=` to receive in place, None for no rank."""

from collections.abc import Callable

import limosa
import numpy as np

from common.comm import FACE_TAG, Communication, Halo
from common.decomposition import Block


class Layer(Communication):
    """The world of `limosa`."""

    name = "limosa"
    nonblocking = True

    def __init__(self) -> None:
        self.world = limosa.world
        self.rank, self.size = self.world.rank, self.world.size

    def barrier(self) -> None:
        self.world.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        self.world.send(values, to)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        return self.world.recv(source, out=room)

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        return self.world.bcast(values, out=values)

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        return self.world.reduce(values, "sum", out=room)

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        return self.world.allreduce(values, "sum", out=room)

    def total(self, value: float) -> float:
        return self.world.allreduce(value)

    def total_on_root(self, value: float) -> float | None:
        return self.world.reduce(value)

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        pieces = self.world.gather(values)
        return None if pieces is None else list(pieces)

    def halo(self, block: Block) -> Halo:
        return _Halo(self.world, block)


class _Halo(Halo):
    def __init__(self, world: limosa.Comm, block: Block) -> None:
        self._world = world
        self._ways = []  # for each direction of travel: what is sent, to which rank, what is received, from which, tag
        for axis, (below, above) in enumerate(block.neighbours):
            layers = [block.layer(axis, place) for place in (0, 1, -2, -1)]
            self._ways += [
                (layers[2], above, layers[0], below, FACE_TAG + 2 * axis),
                (layers[1], below, layers[3], above, FACE_TAG + 2 * axis + 1),
            ]

    def exchange(self, u: np.ndarray) -> None:
        for own, to, ghost, source, tag in self._ways:
            self._world.sendrecv(u[own], to, source, tag, out=u[ghost])

    def start(self, u: np.ndarray) -> Callable[[], None]:
        requests = [self._world.irecv(source, tag, out=u[ghost]) for _, _, ghost, source, tag in self._ways]
        requests += [self._world.isend(u[own], to, tag) for own, to, _, _, tag in self._ways]
        return lambda: limosa.wait_all(requests)
