"""Requests, the functions that wait for several of them, probes, statuses, tags, skeletons, errors."""

import time

import boostmpi
import numpy
from boostmpi import RequestList, any_source, any_tag, get_content, rank, size, skeleton, world

assert size >= 3
following, previous = (rank + 1) % size, (rank - 1) % size
values = [1, "two", [3.0], {"four": 4}, numpy.arange(5), list(range(30000)), numpy.zeros((100, 100)), None]


def same(a, b):
    return numpy.array_equal(a, b) if isinstance(b, numpy.ndarray) else a == b


def raises(kind, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert words in str(error), error
        return error
    raise AssertionError("no %s" % kind.__name__)


# --- one at a time ----------------------------------------------------------------------------------------------------

for tag, value in enumerate(values):
    sending, receiving = world.isend(following, tag, value), world.irecv(previous, tag)
    received, status = receiving.wait()
    assert same(received, value) and (status.source, status.tag, status.error, status.cancelled) == (
        previous,
        tag,
        0,
        False,
    )
    assert isinstance(sending.wait(), boostmpi.Status)
    assert same(receiving.wait()[0], value), "what is done stays done"

receiving = world.irecv(previous, 0)
assert receiving.test() is None
world.barrier()
sending = world.isend(following, 0, values[5])
while (result := receiving.test()) is None:
    sending.test()
    time.sleep(0.001)
assert result[0] == values[5] and result[1].source == previous
sending.wait()

# --- several of the same tag, in order; long ones with blocking sends on both sides -----------------------------------

receives = [world.irecv(previous, 5) for _ in values]
for value in values:
    world.send(following, 5, value)
for request, value in zip(receives, values):
    assert same(request.wait()[0], value)
receiving = world.irecv(previous, 5)
sending = world.isend(following, 5, values[5])
world.barrier()
assert receiving.wait()[0] == values[5]
sending.wait()
receiving = world.irecv(previous, 6)
content = numpy.full((200, 200), -1.0)
world.send(following, 6, values[5])
other = world.irecv(previous, 7, get_content(content))
world.send(following, 7, get_content(numpy.full((200, 200), float(rank))))
if rank == 0:
    for destination in range(1, size):
        world.send(destination, 8, "a")
else:
    assert world.recv(any_source, 8) == "a"
assert receiving.wait()[0] == values[5]
assert other.wait()[0] is content and content[0, 0] == previous

array, receiving = numpy.full(10**5, rank), world.irecv(previous, 9)
sending = world.isend(following, 9, array)
array[:] = -1  # what is sent is the value of the call
assert numpy.all(receiving.wait()[0] == previous)
sending.wait()

# --- lists of requests ------------------------------------------------------------------------------------------------


def exchange():
    requests = RequestList([world.irecv(previous, tag) for tag in range(len(values))])
    requests.extend(world.isend(following, tag, values[tag]) for tag in reversed(range(len(values))))
    return requests


seen = []
boostmpi.wait_all(exchange(), lambda value, status: seen.append(value))
assert len(seen) == 2 * len(values) and all(same(a, b) for a, b in zip(seen, values)) and seen[-1] is None
boostmpi.wait_all(exchange())

requests = exchange()
while not boostmpi.test_all(requests, lambda value, status: seen.append(status.tag)):
    time.sleep(0.001)
assert seen[-2 * len(values) : -len(values)] == list(range(len(values)))

requests, found = exchange(), 0
while requests:
    value, status, index = boostmpi.wait_any(requests)
    if isinstance(requests[index], boostmpi.RequestWithValue):
        assert same(value, values[status.tag])
        found += 1
    del requests[index]
assert found == len(values)

requests = exchange()
while requests:
    if (result := boostmpi.test_any(requests)) is not None:
        del requests[result[2]]

requests, found = exchange(), []
while requests:
    before = len(requests)
    first = boostmpi.wait_some(requests, lambda value, status: found.append(value))
    assert 0 <= first < before == len(requests)
    del requests[first:]
    if requests:
        del requests[boostmpi.test_some(requests, lambda value, status: found.append(value)) :]
assert len(found) == 2 * len(values)

raises(ValueError, "empty request vector", boostmpi.wait_any, RequestList())
raises(NotImplementedError, "not comparable", lambda: None in RequestList())

# --- probes, wildcards, statuses --------------------------------------------------------------------------------------

world.barrier()
assert world.iprobe(any_source, 99) is None
if rank == 0:
    for tag in (3, 4):
        world.send(dest=1, tag=tag, value="tag %d" % tag)
    world.send(1)
elif rank == 1:
    assert world.probe(0, 4).tag == 4
    while world.iprobe(tag=3) is None:
        pass
    assert world.recv(0, 4) == "tag 4"
    value, status = world.recv(any_source, any_tag, True)
    assert value == "tag 3" and (status.source, status.tag) == (0, 3)
    assert world.recv(return_status=True)[0] is None

# --- skeleton and content ---------------------------------------------------------------------------------------------

if rank == 0:
    a = numpy.arange(6.0).reshape(2, 3)
    for p in range(1, size):
        world.send(p, value=skeleton(a))
    boostmpi.broadcast(world, skeleton(a), 0)
    for k in range(3):
        a += 1
        for p in range(1, size):
            world.send(p, k, get_content(a))
    boostmpi.broadcast(world, get_content(a[:, ::2]), 0)
    world.send(1, 0, get_content(a))
else:
    proxy = world.recv(0)
    assert isinstance(proxy, boostmpi.SkeletonProxy) and proxy.object.shape == (2, 3)
    assert boostmpi.broadcast(world, None, 0).object.dtype == float
    content = get_content(proxy.object)
    assert world.recv(0, 0, content)[0, 0] == 1
    array, status = world.recv(0, 1, content, True)
    assert array is proxy.object and array[0, 0] == 2 and status.tag == 1
    assert world.irecv(source=0, tag=2, buffer=get_content(proxy)).wait()[0][0, 0] == 3
    proxy.object[...] = 0
    boostmpi.broadcast(world, get_content(proxy.object[:, ::2]), 0)
    assert proxy.object.tolist() == [[3, 0, 5], [6, 0, 8]]
    if rank == 1:
        raises(boostmpi.Error, "buffer=", world.recv, 0)
error = raises(boostmpi.ObjectWithoutSkeletonError, "has no skeleton", skeleton, {"a": 1})
assert error.object == {"a": 1}

# --- errors, and the rest ---------------------------------------------------------------------------------------------

error = raises(boostmpi.Error, "(code ", world.send, size, 0, 1)
assert error.routine == "MPI_Send" and error.result_code > 0 and error.what.startswith("MPI_Send: ")
assert error.what.count("MPI_Send: ") == 1 and "MPI_Send_c: " not in error.what
cancelled = world.irecv(previous, 1234)
cancelled.cancel()
value, status = cancelled.wait()
assert value is None and status.cancelled
world.barrier()

import boost.mpi  # noqa: E402
import boost.parallel.mpi  # noqa: E402

assert boost.mpi is boost.parallel.mpi and boost.mpi.world is world
assert boost.mpi.Exception is boostmpi.Error and boost.mpi.ObjectWithoutSkeleton is boostmpi.ObjectWithoutSkeletonError
assert boost.mpi.__version__ and boost.mpi.__author__
assert boostmpi.collectives_tag > boostmpi.max_tag >= 32766 and boostmpi.processor_name and boostmpi.host_rank is None
assert boostmpi.init([]) is False and boostmpi.initialized() and not boostmpi.finalized()
boostmpi.finalize()
boostmpi.finalize()
assert boostmpi.finalized()
print("%d is content" % rank)
