"""Communication by boostmpi: any value goes in, a value comes out; reductions take any function."""

import operator
from collections.abc import Callable

import boostmpi as mpi
import numpy as np

from common.comm import Communication, Halo, OrderedHalo
from common.decomposition import Block


class Layer(Communication):
    """The world of boostmpi."""

    name = "boostmpi"
    nonblocking = True

    def __init__(self) -> None:
        self.world = mpi.world
        self.rank, self.size = mpi.rank, mpi.size

    def barrier(self) -> None:
        self.world.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        self.world.send(dest=to, tag=0, value=values)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        return self.world.recv(source=source)

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        return mpi.broadcast(self.world, values, 0)

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        return mpi.reduce(self.world, values, operator.add, 0)

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        return mpi.all_reduce(self.world, values, operator.add)

    def total(self, value: float) -> float:
        return mpi.all_reduce(self.world, value, operator.add)

    def total_on_root(self, value: float) -> float | None:
        return mpi.reduce(self.world, value, operator.add, 0)

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        pieces = mpi.gather(self.world, values, 0)
        return None if self.rank != 0 else list(pieces)

    def halo(self, block: Block) -> Halo:
        return _Halo(self, block)

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        self.world.send(dest=to, tag=tag, value=face)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        return self.world.recv(source=source, tag=tag)


class _Halo(OrderedHalo):
    def start(self, u: np.ndarray) -> Callable[[], None]:
        receives = [(face.ghost, mpi.world.irecv(face.partner, face.receive_tag)) for face, _ in self.faces]
        sends = [mpi.world.isend(face.partner, face.send_tag, u[face.own]) for face, _ in self.faces]

        def finish() -> None:
            for ghost, request in receives:
                u[ghost], _ = request.wait()
            for request in sends:
                request.wait()

        return finish
