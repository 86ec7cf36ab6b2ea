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
        # Nobody sends before all have looked.
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
