"""Communication by pyMPI: values go in, values come out, together with a status where something is received."""

import os
from collections.abc import Callable

import numpy as np

os.environ["LIMOSA_DIALECT"] = "pympi"  # MYMPI's module has the same name

import mpi

from common.comm import Communication, Halo, OrderedHalo
from common.decomposition import Block


class Layer(Communication):
    """The world of pyMPI."""

    name = "pympi"
    nonblocking = True

    def __init__(self) -> None:
        self.rank, self.size = mpi.rank, mpi.size

    def barrier(self) -> None:
        mpi.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        mpi.send(values, to)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        message, _ = mpi.recv(source)
        return message

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        return mpi.bcast(values)

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        return mpi.reduce(values, mpi.SUM)

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        return mpi.allreduce(values, mpi.SUM)

    def total(self, value: float) -> float:
        return mpi.allreduce(value, mpi.SUM)

    def total_on_root(self, value: float) -> float | None:
        return mpi.reduce(value, mpi.SUM)

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        return mpi.gather([values])

    def halo(self, block: Block) -> Halo:
        return _Halo(self, block)

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        mpi.send(face, to, tag)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        message, _ = mpi.recv(source, tag)
        return message


class _Halo(OrderedHalo):
    def start(self, u: np.ndarray) -> Callable[[], None]:
        receives = [(face.ghost, mpi.irecv(face.partner, face.receive_tag)) for face, _ in self.faces]
        sends = [mpi.isend(u[face.own], face.partner, face.send_tag) for face, _ in self.faces]

        def finish() -> None:
            for ghost, request in receives:
                u[ghost] = request.message
            mpi.waitall(sends)

        return finish
