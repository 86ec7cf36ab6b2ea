"""Communication by MYMPI: C's calls with an underscore, whose results are new flat arrays."""

import os
import sys

import numpy as np

os.environ["LIMOSA_DIALECT"] = "mympi"  # pyMPI's module has the same name

import mpi

from common.comm import Communication

DOUBLE, WORLD, SUM, TAG = mpi.MPI_DOUBLE, mpi.MPI_COMM_WORLD, mpi.MPI_SUM, 0


class Layer(Communication):
    """The world of MYMPI, which has no non-blocking calls that work and no reduction to all."""

    name = "mympi"

    def __init__(self) -> None:
        mpi.mpi_init(len(sys.argv), sys.argv)
        self.rank, self.size = mpi.mpi_comm_rank(WORLD), mpi.mpi_comm_size(WORLD)

    def barrier(self) -> None:
        mpi.mpi_barrier(WORLD)

    def send(self, values: np.ndarray, to: int) -> None:
        mpi.mpi_send(values, values.size, DOUBLE, to, TAG, WORLD)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        return mpi.mpi_recv(room.size, DOUBLE, source, TAG, WORLD)

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        return mpi.mpi_bcast(values, values.size, DOUBLE, 0, WORLD)

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        return mpi.mpi_reduce(values, values.size, DOUBLE, SUM, 0, WORLD)

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        total = mpi.mpi_reduce(values, values.size, DOUBLE, SUM, 0, WORLD)
        return mpi.mpi_bcast(total, values.size, DOUBLE, 0, WORLD)

    def total(self, value: float) -> float:
        total = mpi.mpi_reduce(value, 1, DOUBLE, SUM, 0, WORLD)
        return float(mpi.mpi_bcast(total, 1, DOUBLE, 0, WORLD)[0])

    def total_on_root(self, value: float) -> float | None:
        total = mpi.mpi_reduce(value, 1, DOUBLE, SUM, 0, WORLD)
        return float(total[0]) if self.rank == 0 else None

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        places = np.cumsum([0, *sizes[:-1]])
        kind = (
            DOUBLE if values.dtype == np.float64 else mpi.MPI_INT
        )  # there are few types of data: whole numbers go as int32
        whole = mpi.mpi_gatherv(values, values.size, kind, sizes, places, kind, 0, WORLD)
        return (
            None
            if self.rank != 0
            else [piece.astype(values.dtype, copy=False) for piece in np.split(whole, places[1:])]
        )

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        mpi.mpi_send(face, face.size, DOUBLE, to, tag, WORLD)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        return mpi.mpi_recv(room.size, DOUBLE, source, tag, WORLD).reshape(room.shape)
