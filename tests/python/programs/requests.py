"""Requests: waited for in all ways, dropped, cancelled; in threads. Two ranks or more."""

from __future__ import annotations

import asyncio
import gc
import threading

import cases
import limosa
import numpy as np

world = limosa.world
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
VALUES = ["text", np.arange(3.0), np.arange(50_000.0), [np.arange(40_000.0), "x"], np.zeros((2, 2, 2, 2))]


def case_wait_and_test():
    for value in VALUES:
        request = world.irecv(source=left)
        assert not request.done and "under way" in repr(request)
        # No rank sends before all have looked.
        world.barrier()
        sent = world.isend(value, to=right)
        while not request.test():
            pass
        assert request.done and request.test() and str(request.wait()) == str(value)
        assert request.wait() is request.wait()
        assert sent.wait() is None


def case_many_at_once():
    count = 200
    receives = [world.irecv(source=left, tag=tag) for tag in range(count)]
    sends = [world.isend(np.full(2000 * (tag % 3) + 1, tag), to=right, tag=tag) for tag in reversed(range(count))]
    values = limosa.wait_all(receives + sends)
    assert [value[0] for value in values[:count]] == list(range(count)) and values[count:] == [None] * count
    assert limosa.wait_all([]) == []


def case_wait_any():
    requests = [world.irecv(source=left, tag=tag) for tag in range(5)]
    world.barrier()
    world.send(np.arange(20_000), to=right, tag=3) if rank else world.isend(np.arange(20_000), to=right, tag=3)
    place, value = limosa.wait_any(requests)
    assert place == 3 and len(value) == 20_000
    del requests[3]
    world.barrier()
    assert [request.cancel() for request in requests] == [True] * 4
    assert [request.wait() for request in requests] == [None] * 4
    assert not requests[0].cancel()
    with cases.raises(ValueError):
        limosa.wait_any([])


def case_dropped_sends_arrive():
    for value in VALUES:
        world.isend(value, to=right)
        world.isend(np.full(50_000, rank), to=right)
    gc.collect()
    junk = [np.full(50_000, -1.0) for _ in range(10)]
    for value in VALUES:
        assert str(world.recv(source=left)) == str(value)
        assert (world.recv(source=left) == left).all()
    assert len(junk) == 10


def case_await():
    async def both(value):
        request = world.irecv(source=left)
        ticked = asyncio.Event()

        async def ticking():
            while not request.done:
                ticked.set()
                await asyncio.sleep(0.001)

        ticker = asyncio.ensure_future(ticking())
        await ticked.wait()
        # Nothing was sent before all have ticked.
        world.barrier()
        _, got = await asyncio.gather(world.isend(value, to=right), request)
        await ticker
        return got

    for value in VALUES:
        assert str(asyncio.run(both(value))) == str(value)

    async def fails():
        request = world.irecv(source=left, out=np.zeros(1))
        world.isend("text", to=right)
        with cases.raises(limosa.errors.DatatypeError):
            await request

    asyncio.run(fails())


def begun(request):
    """A coroutine that has looked at a request once."""
    coroutine = request.__await__()
    next(coroutine)
    return coroutine


def case_an_await_that_is_cancelled_withdraws_the_receive():
    async def wait_for_nothing(limit):
        request = world.irecv(source=left, tag=1)
        try:
            await asyncio.wait_for(request, limit)
        except asyncio.TimeoutError:
            return request
        raise AssertionError("something was received")

    for value in VALUES:
        # With 0, the request is dropped before the coroutine has begun.
        again = [asyncio.run(wait_for_nothing(limit)) for limit in (0.01, 0.0, 0.01)][2]
        world.barrier()
        sent = [world.isend(text, to=right, tag=1) for text in (value, "last")]
        assert str(world.recv(source=left, tag=1)) == str(value)
        assert again.wait() == "last"
        limosa.wait_all(sent)


def case_a_message_of_an_abandoned_receive_goes_to_the_next_one():
    for value in VALUES:
        receive = world.irecv(source=rank, tag=2)
        coroutine = begun(receive)
        sent = [world.isend(each, to=rank, tag=2) for each in (value, "second", "third")]
        coroutine.close()
        assert world.probe(tag=2).source == rank and world.iprobe(tag=3) is None
        status = limosa.Status()
        assert str(world.recv(status=status)) == str(value) and (status.source, status.tag) == (rank, 2)
        assert world.sendrecv("fourth", to=rank, source=rank, tag=2) == "second"
        assert [world.recv(source=rank), world.irecv(tag=2).wait()] == ["third", "fourth"]
        limosa.wait_all(sent)


def case_a_message_of_an_abandoned_receive_goes_to_one_that_is_posted_already():
    for number, value in enumerate(VALUES):
        receives = [world.irecv(source=rank, tag=tag) for tag in (2, 2, 3, limosa.ANY)]
        coroutines = [begun(receive) for receive in receives[:3]]
        sent = [world.isend(*each) for each in ((value, rank, 2), ("second", rank, 2), ("third", rank, 3))]
        while number and "under way" in repr(receives[1]):  # The message is moved also if it has been received.
            world.iprobe(tag=99)  # lets the library go on
        coroutines[0].close()
        coroutines[2].close()
        assert str(receives[1].wait()) == str(value)
        assert receives[3].wait() == "second"
        assert world.recv() == "third"
        limosa.wait_all(sent)


def case_an_abandoned_array_is_not_written_any_more():
    for shape in ((3,), (50_000,)):
        array, out = np.arange(float(np.prod(shape))), np.zeros(shape)
        for is_complete in (False, True):
            coroutine = begun(receive := world.irecv(source=rank, tag=2, out=out))
            sent = world.isend(array, to=rank, tag=2)
            while is_complete and "done" not in repr(receive):
                world.iprobe(tag=99)  # lets the library go on
            coroutine.close()
            out[:] = -1
            assert (world.recv(source=rank) == array).all() and (out == -1).all()
            sent.wait()


def case_a_dropped_receive_is_withdrawn():
    for value in VALUES:
        world.irecv(source=rank, tag=2)
        request = world.isend(value, to=rank, tag=2)
        assert str(world.recv(source=rank)) == str(value)
        request.wait()
        receive = world.irecv(source=rank, tag=2)
        request = world.isend(value, to=rank, tag=2)
        del receive
        assert str(world.recv(source=rank)) == str(value)
        request.wait()
        receive = world.irecv(source=rank, tag=2)
        request = world.isend(value, to=rank, tag=2)
        while not receive.test():
            pass
        del receive  # The program knows that it has come.
        assert world.iprobe() is None


def case_threads():
    each = 60

    def exchange(number):
        try:
            for i in range(each):
                value = np.full((i % 3) * 3000 + 2, 1000.0 * number + i)
                request = world.isend(value, to=right, tag=number)
                got = world.recv(source=left, tag=number)
                assert got.shape == value.shape and (got == value).all()
                request.wait()
        except BaseException as error:
            problems.append(error)

    problems = []
    threads = [threading.Thread(target=exchange, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def case_threads_with_wildcards():
    got, lock = [], threading.Lock()

    def take(count):
        for _ in range(count):
            number, data = world.recv()
            with lock:
                got.append(number)
            assert (data == number).all(), (number, data)

    threads = [threading.Thread(target=take, args=(20,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        world.send((number, np.full((number % 2) * 4000 + 1, number)), to=right)
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(60))


if __name__ == "__main__":
    cases.run()
    world.isend(np.full(300_000, rank), to=right)  # completed when the program ends
    assert world.recv(source=left)[0] == left
