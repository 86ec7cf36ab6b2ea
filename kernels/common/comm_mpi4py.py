"""Communication by mpi4py: buffers everywhere, faces as derived datatypes, walls as null processes."""

from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from common.comm import FACE_TAG, Communication, Halo
from common.decomposition import Block


class Layer(Communication):
    """The world communicator of mpi4py."""

    name = "mpi4py"
    nonblocking = True

    def __init__(self) -> None:
        self.world = MPI.COMM_WORLD
        self.rank, self.size = self.world.rank, self.world.size

    def barrier(self) -> None:
        self.world.Barrier()

    def send(self, values: np.ndarray, to: int) -> None:
        self.world.Send(values, to)

    def receive(self, room: np.ndarray, source: int) -> np.ndarray:
        self.world.Recv(room, source)
        return room

    def broadcast(self, values: np.ndarray) -> np.ndarray:
        self.world.Bcast(values)
        return values

    def reduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray | None:
        self.world.Reduce(values, room)
        return room

    def allreduce(self, values: np.ndarray, room: np.ndarray) -> np.ndarray:
        self.world.Allreduce(values, room)
        return room

    def total(self, value: float) -> float:
        result = np.array(value)
        self.world.Allreduce(MPI.IN_PLACE, result)
        return float(result)

    def total_on_root(self, value: float) -> float | None:
        result = np.empty(())
        self.world.Reduce(np.array(value), result)
        return float(result) if self.rank == 0 else None

    def gather(self, values: np.ndarray, sizes: list[int]) -> list[np.ndarray] | None:
        whole = np.empty(sum(sizes), values.dtype) if self.rank == 0 else None
        self.world.Gatherv(values, None if whole is None else [whole, sizes])
        return None if whole is None else np.split(whole, np.cumsum(sizes)[:-1])

    def halo(self, block: Block) -> Halo:
        return _Halo(self.world, block)


class _Halo(Halo):
    def __init__(self, world: MPI.Comm, block: Block) -> None:
        self._world = world
        self._faces = []
        for axis, neighbours in enumerate(block.neighbours):
            below, above = (MPI.PROC_NULL if neighbour is None else neighbour for neighbour in neighbours)
            types = [_face_type(block, axis, place) for place in (0, 1, block.shape[axis], block.shape[axis] + 1)]
            self._faces.append((below, above, types, FACE_TAG + 2 * axis))

    def __del__(self) -> None:
        for _, _, types, _ in self._faces if not MPI.Is_finalized() else ():
            for made in types:
                made.Free()

    def exchange(self, u: np.ndarray) -> None:
        for below, above, (low_ghost, low, high, high_ghost), tag in self._faces:
            self._world.Sendrecv([u, 1, high], above, tag, [u, 1, low_ghost], below, tag)
            self._world.Sendrecv([u, 1, low], below, tag + 1, [u, 1, high_ghost], above, tag + 1)

    def start(self, u: np.ndarray) -> Callable[[], None]:
        requests = []
        for below, above, (low_ghost, low, high, high_ghost), tag in self._faces:
            requests += [
                self._world.Irecv([u, 1, low_ghost], below, tag),
                self._world.Irecv([u, 1, high_ghost], above, tag + 1),
                self._world.Isend([u, 1, high], above, tag),
                self._world.Isend([u, 1, low], below, tag + 1),
            ]
        return lambda: MPI.Request.Waitall(requests)


def _face_type(block: Block, axis: int, place: int) -> MPI.Datatype:
    """Datatype of one layer across an axis, without corners."""
    layer, corner = list(block.shape), [1] * len(block.shape)
    layer[axis], corner[axis] = 1, place
    return MPI.DOUBLE.Create_subarray(list(block.padded), layer, corner).Commit()
