"""Communication by mpi4py's methods in lower case, which take any object, like modules that return values."""

from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from common.comm import Communication, Halo, OrderedHalo
from common.decomposition import Block


class Layer(Communication):
    """The world communicator of mpi4py, used for objects."""

    name = "mpi4py_objects"
    nonblocking = True

    def __init__(self) -> None:
        self.world = MPI.COMM_WORLD
        self.rank, self.size = self.world.rank, self.world.size

    def barrier(self) -> None:
        self.world.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        self.world.send(values, to)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        return self.world.recv(source=source)

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        return self.world.bcast(values)

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        return self.world.reduce(values)

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        return self.world.allreduce(values)

    def total(self, value: float) -> float:
        return self.world.allreduce(value)

    def total_on_root(self, value: float) -> float | None:
        return self.world.reduce(value)

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        return self.world.gather(values)

    def halo(self, block: Block) -> Halo:
        return _Halo(self, block)

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        self.world.send(face, to, tag)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        return self.world.recv(source=source, tag=tag)


class _Halo(OrderedHalo):
    def start(self, u: np.ndarray) -> Callable[[], None]:
        world = MPI.COMM_WORLD
        sends = [world.isend(u[face.own], face.partner, face.send_tag) for face, _ in self.faces]

        def finish() -> None:  # a receive must know the size of an object beforehand, so these block
            for face, _ in self.faces:
                u[face.ghost] = world.recv(source=face.partner, tag=face.receive_tag)
            MPI.Request.waitall(sends)

        return finish
