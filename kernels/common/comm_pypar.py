"""Communication by pypar: functions of the module, buffers with ``use_buffer``, ``buffer`` and ``bypass``."""

import numpy as np
import pypar

from common.comm import Communication


class Layer(Communication):
    """The processes of pypar, which has no communicators, no non-blocking calls and no reduction to all."""

    name = "pypar"

    def __init__(self) -> None:
        self.rank, self.size = pypar.rank(), pypar.size()

    def barrier(self) -> None:
        pypar.barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        pypar.send(values, to, use_buffer=True, bypass=True)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        return pypar.receive(source, buffer=room, bypass=True)

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        pypar.broadcast(values, 0, bypass=True)
        return values

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        pypar.reduce(values, pypar.SUM, 0, buffer=room, bypass=True)
        return room

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        pypar.reduce(values, pypar.SUM, 0, buffer=room, bypass=True)
        pypar.broadcast(room, 0, bypass=True)
        return room

    def total(self, value: float) -> float:
        result = np.zeros(1)
        pypar.reduce(np.array([value]), pypar.SUM, 0, buffer=result, bypass=True)
        pypar.broadcast(result, 0, bypass=True)
        return float(result[0])

    def total_on_root(self, value: float) -> float | None:
        result = np.zeros(1)
        pypar.reduce(np.array([value]), pypar.SUM, 0, buffer=result, bypass=True)
        return float(result[0]) if self.rank == 0 else None

    def send_face(self, face: np.ndarray, to: int, tag: int) -> None:
        pypar.send(face, to, use_buffer=True, bypass=True, tag=tag)

    def receive_face(self, room: np.ndarray, source: int, tag: int) -> np.ndarray:
        return pypar.receive(source, buffer=room, bypass=True, tag=tag)
