"""Values of all kinds from rank to rank. Any number of ranks from 2."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import datetime
import decimal
import sys

import cases
import limosa
import numpy as np

world = limosa.world
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size


@dataclasses.dataclass(eq=False)
class Record:
    name: str
    data: np.ndarray


class Dlpack:
    """An array of a library that offers nothing but DLPack."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class Tensor:
    """A tensor whose memory NumPy cannot take, as one of bfloat16, or one that has a gradient."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return type(other) is Tensor and self.number == other.number

    __hash__ = None

    def __dlpack__(self, **options):
        raise BufferError("Unsupported dtype in DLTensor.")

    def __dlpack_device__(self):
        return 1, 0


class Managed:
    """An array of a library for graphics cards, by default in memory that the processor can read, too."""

    def __init__(self, data, address=None):
        self.data = data
        self.__cuda_array_interface__ = {**data.__array_interface__, "version": 3, "stream": None}
        if address is not None:
            self.__cuda_array_interface__["data"] = (address, False)


class Interface:
    """An array of a library that offers ``__array_interface__``."""

    def __init__(self, data):
        self.data = data

    @property
    def __array_interface__(self):
        return self.data.__array_interface__


def same(a, b):
    """Tell whether what arrived is what was sent, in value and type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.tobytes() == b.tobytes() if a.dtype.kind == "V" else np.array_equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, Record):
        return same(vars(a), vars(b))
    return a == b


def big(*shape, dtype=float):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


VALUES = [
    None,
    True,
    7,
    10**50,
    2.5,
    1 + 2j,
    "text",
    "é" * 50_000,
    b"",
    b"bytes",
    bytes(range(256)) * 500,
    bytearray(b"abc"),
    bytearray(100_000),
    array.array("d", [1.0, 2.0]),
    array.array("h", range(30_000)),
    array.array("u", "text"),
    [],
    (1, "a", None),
    {"a": [1, 2], "b": {"c": ()}},
    {3, 1},
    datetime.date(2001, 2, 3),
    decimal.Decimal("1.5"),
    Record("r", big(5)),
    Record("r", big(100_000)),
    [big(3), big(2000), big(50_000, dtype="i4"), "text"],
    {i: str(i) for i in range(5000)},
    [big(3000) for _ in range(20)],
    np.float32(2.5),
    np.int64(-3),
    np.bool_(True),
    np.datetime64("2020-01-02"),
    np.str_("text"),
    np.array(5.0),
    np.array([]),
    np.zeros((3, 0, 2)),
    big(1),
    big(1017),
    big(1018),
    big(1019),
    big(4, 5, 6),
    big(60, 50, 40),
    big(2, 3, 2, 3),
    big(10, 10, 10, 10, 2),
    big(30, dtype=">i4"),
    big(10_000, dtype=">f8"),
    big(20, dtype="f2"),
    big(20, dtype=complex),
    big(20, dtype=np.longdouble),
    np.array([True, False]),
    np.array(["a", "bcd"]),
    np.array([b"a", b"bcd"]),
    np.arange(5).astype("M8[ms]"),
    np.arange(30_000).astype("m8[us]"),
    np.array([None, {"a": 1}, "x"], dtype=object),
    np.zeros(3, dtype=[("a", "f8"), ("b", "i4", (2,))]),
    np.zeros(5000, dtype=[("a", "f8"), ("b", "i4")]),
    np.zeros(4, dtype="V7"),
    np.ma.masked_array([1, 2], mask=[True, False]).data,
    np.matrix([[1, 2], [3, 4]]),
]

SLICES = [
    big(40)[::2],
    big(40)[::-1],
    big(20_000)[::3],
    big(20_000)[::-1],
    big(200, 200)[:, 7],
    big(200, 200)[::2, 1:-1],
    big(200, 200).T,
    big(200, 200)[:, ::-1].T,
    big(30, 40, 50)[:, 3:5, ::7],
    big(30, 40, 50).transpose(1, 2, 0),
    np.asfortranarray(big(100, 90)),
    np.asfortranarray(big(20, 20, 20, 20)),
    np.broadcast_to(big(100), (100, 100)),
    np.zeros(2000, dtype=[("a", "f8"), ("b", "i4")])["b"],
]


def case_values_go_around():
    for value in VALUES + SLICES:
        arrived = world.sendrecv(value, to=right, source=left)
        assert same(arrived, value), (value, arrived)


def case_values_there_and_back_by_blocking_calls():
    for number, value in enumerate(VALUES + SLICES):
        if rank == 0:
            world.send(value, to=1, tag=number)
            assert same(world.recv(source=1, tag=number), value), value
        elif rank == 1:
            world.send(world.recv(source=0, tag=number), to=0, tag=number)


def case_what_arrives_can_be_written_to_and_is_its_own():
    for value in (big(3), big(50_000), big(2, 2, 2, 2), [big(20_000)]):
        first = world.sendrecv(value, to=right, source=left)
        second = world.sendrecv(value, to=right, source=left)
        one, two = (first[0], second[0]) if isinstance(value, list) else (first, second)
        one[...] = -1
        assert not (two == -1).any()


def case_other_arrays_arrive_as_numpy_arrays():
    numbers = big(2000)
    for value in (
        memoryview(numbers),
        Dlpack(numbers),
        Interface(numbers),
        (ctypes.c_double * 2000)(*numbers),
        numbers.data,
    ):
        arrived = world.sendrecv(value, to=right, source=left)
        assert type(arrived) is np.ndarray and np.array_equal(arrived, numbers), type(value)
    assert np.array_equal(world.sendrecv(memoryview(b"abc"), to=right, source=left), [97, 98, 99])


def case_out_is_received_into():
    for value in (
        *[v for v in VALUES if isinstance(v, np.ndarray) and type(v) is np.ndarray and not v.dtype.hasobject],
        *SLICES,
    ):
        for make in (
            np.empty,
            lambda shape, dtype: np.empty((*shape, 2), dtype)[..., 1],
            lambda shape, dtype: np.empty(shape, dtype, "F"),
        ):
            out = make(value.shape, value.dtype)
            assert world.sendrecv(value, to=right, source=left, out=out) is out
            assert same(np.array(out), np.array(value)), value.dtype
            out[...] = np.zeros((), value.dtype)
            request = world.irecv(source=left, out=out)
            world.isend(value, to=right)
            assert request.wait() is out
            assert same(np.array(out), np.array(value))


def case_out_may_be_any_writable_memory():
    for out in (bytearray(5), array.array("B", bytes(5)), (ctypes.c_uint8 * 5)(), memoryview(bytearray(5))):
        assert world.sendrecv(b"12345", to=right, source=left, out=out) is out
        assert bytes(out) == b"12345"
    out = np.zeros(3)
    assert world.sendrecv(array.array("d", [1, 2, 3]), to=right, source=left, out=Interface(out)) is not None
    assert out.tolist() == [1, 2, 3]
    number = np.zeros(())
    world.sendrecv(np.float64(2), to=right, source=left, out=number)
    assert number == 2
    objects = np.array([None, None])
    assert world.sendrecv(
        np.array([1, "x"], object), to=right, source=left, out=objects
    ) is objects and objects.tolist() == [1, "x"]
    with cases.raises(limosa.errors.BufferError, "out is a list"):
        world.recv(source=left, out=[1])


def case_what_has_no_memory_for_numpy_is_pickled():
    tensor = Tensor(rank)
    assert world.sendrecv(tensor, to=right, source=left) == Tensor(left)
    assert world.sendrecv([tensor], to=right, source=left) == [Tensor(left)]
    assert world.bcast(tensor) == Tensor(0) and world.allgather(tensor) == [Tensor(each) for each in range(size)]
    assert world.igather(tensor).wait() == ([Tensor(each) for each in range(size)] if rank == 0 else None)


def case_memory_of_a_device_is_read_or_named():
    data = np.arange(12.0).reshape(3, 4)
    for there in (data, data[::-1, ::2]):
        assert same(world.sendrecv(Managed(there), to=right, source=left), np.array(there))
    # What no process has mapped, as a pointer to a graphics card's memory.
    beyond = Managed(data, address=0x10)
    for call in (world.send, world.isend, world.irecv):
        with cases.raises(limosa.errors.BufferError, "this Managed", "0x10", "copy it to a NumPy array"):
            call(beyond, to=right) if call != world.irecv else call(out=beyond)


def case_none_is_nobody():
    assert world.send(1, to=None) is None
    assert world.recv(source=None) is None
    out = np.ones(2)
    assert world.recv(source=None, out=out) is out and out.tolist() == [1, 1]
    assert world.isend(1, to=None).wait() is None
    assert world.irecv(source=None).wait() is None
    assert world.irecv(source=None, out=out).wait() is out
    assert world.sendrecv(1, to=None, source=None) is None
    request = world.isend("x", to=right)
    assert world.sendrecv(1, to=None, source=left) == "x"
    request.wait()
    request = world.irecv(source=left)
    assert world.sendrecv("y", to=right, source=None, out=out) is out
    assert request.wait() == "y"


def case_wildcards_keep_the_order_of_each_sender():
    if rank == 0:
        seen = {other: [] for other in range(1, size)}
        status = limosa.Status()
        for _ in range(20 * (size - 1)):
            number, data = world.recv(status=status)
            assert status.tag == number and len(data) == (5000 if number % 3 else 3), status
            seen[status.source].append(number)
        assert all(numbers == list(range(20)) for numbers in seen.values()), seen
    else:
        for number in range(20):
            world.send((number, big(5000 if number % 3 else 3)), to=0, tag=number)


def case_tags_choose():
    requests = [world.isend(big(5000) + tag, to=right, tag=tag) for tag in range(5)]
    for tag in (3, 1, 4, 0, 2):
        assert world.recv(source=left, tag=tag)[0] == tag
    limosa.wait_all(requests)


def case_probe():
    request = world.isend(big(9000), to=right, tag=4)
    status = world.probe(tag=4)
    assert (status.source, status.tag) == (left, 4)
    assert world.iprobe(source=left, tag=5) is None
    while world.iprobe(source=left) is None:
        pass
    assert len(world.recv(source=left)) == 9000
    request.wait()


def case_two_communicators_do_not_mix():
    with world.dup() as other:
        one, two = world.isend("world", to=right), other.isend("other", to=right)
        assert other.recv(source=left) == "other"
        assert world.recv(source=left) == "world"
        limosa.wait_all([one, two])


if __name__ == "__main__":
    sys.setrecursionlimit(500)
    cases.run()
