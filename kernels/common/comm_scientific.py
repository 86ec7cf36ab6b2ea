"""Communication by Scientific.MPI: methods of a communicator that fill the arrays they are given."""

from collections.abc import Callable

import numpy as np
from Scientific import MPI

from common.comm import Communication, Halo, OrderedHalo
from common.decomposition import Block

TAG = 0


class Layer(Communication):
    """The world of Scientific.MPI, which has no collection of arrays on one process."""

    name = "scientific"
    nonblocking = True

    def __init__(self) -> None:
        self.world = MPI.world
        self.rank, self.size = self.world.rank, self.world.size

    def barrier(self) -> None:
        self.world.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        self.world.send(values, to, TAG)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        values, _, _, _ = self.world.receive(room, source, TAG)
        return values

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        self.world.broadcast(values, 0)
        return values

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        self.world.reduce(values, room, MPI.sum, 0)
        return room

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        self.world.allreduce(values, room, MPI.sum)
        return room

    def total(self, value: float) -> float:
        result = np.zeros(1)
        self.world.allreduce(np.array([value]), result, MPI.sum)
        return float(result[0])

    def total_on_root(self, value: float) -> float | None:
        result = np.zeros(1)
        self.world.reduce(np.array([value]), result, MPI.sum, 0)
        return float(result[0]) if self.rank == 0 else None

    def halo(self, block: Block) -> Halo:
        return _Halo(self, block)

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        self.world.send(face, to, tag)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        self.world.receive(room, source, tag)
        return room


class _Halo(OrderedHalo):
    def start(self, u: np.ndarray) -> Callable[[], None]:
        world = MPI.world
        receives = [
            (face.ghost, world.nonblockingReceive(room, face.partner, face.receive_tag)) for face, room in self.faces
        ]
        sends = [world.nonblockingSend(u[face.own], face.partner, face.send_tag) for face, _ in self.faces]

        def finish() -> None:
            for ghost, request in receives:
                u[ghost] = request.wait()[0]
            for request in sends:
                request.wait()

        return finish
