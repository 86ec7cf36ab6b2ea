"""`limosa.Executor` has the behaviour of the executors of `concurrent.futures`. Any number of ranks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from concurrent.futures import Future

import cases
import limosa
import numpy as np
from limosa import errors
from limosa._executor import _Pool
from mpi4py import MPI

world = limosa.world
rank, size = world.rank, world.size


def square(x):
    return x * x


def slow_square(x):
    time.sleep(0.05)
    return x * x


def where(_):
    time.sleep(0.01)
    return limosa.world.rank


def broken(x):
    raise KeyError(f"{x} is not there")


def lambda_of(x):
    return lambda: x


def lock_of(_):
    return threading.Lock()


def big(n):
    return np.full(n, 1.5)


class SpecialError(Exception):
    """It cannot be made again from its arguments."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def special():
    raise SpecialError(1, 2)


def case_calls_are_made():
    with limosa.Executor() as pool:
        assert pool.is_root == (rank == 0)
        if pool.is_root:
            assert isinstance(pool, concurrent.futures.Executor)
            assert list(pool.map(square, range(100))) == [x * x for x in range(100)]
            assert pool.submit(divmod, 17, 5).result() == (3, 2)
            assert pool.submit(int, "ff", base=16).result(timeout=60) == 255
            ranks = set(pool.map(where, range(10 * size)))
            assert ranks == (set(range(1, size)) if size > 1 else {0})
            assert pool.submit(big, 100_000).result().sum() == 150_000
            futures = [pool.submit(square, x) for x in range(10)]
            assert {future.result() for future in concurrent.futures.as_completed(futures)} == {
                x * x for x in range(10)
            }


def case_calls_are_handed_out_in_chunks():
    with limosa.Executor() as pool:
        if pool.is_root:
            assert list(pool.map(divmod, range(50), range(1, 60), chunksize=7)) == [(0, x) for x in range(50)]
            ranks = list(pool.map(where, range(24), chunksize=8))
            assert len(ranks) == 24 and all(len(set(ranks[place : place + 8])) == 1 for place in (0, 8, 16))
            with cases.raises(ValueError, "chunksize=0"):
                pool.map(square, [1], chunksize=0)
            with cases.raises(KeyError, "5 is not there"):
                list(pool.map(broken, [5], chunksize=2))


def case_cloudpickle_sends_what_pickle_does_not():
    factor = 3
    with limosa.Executor() as pool:
        if pool.is_root:
            assert list(pool.map(lambda x: factor * x, range(5))) == [0, 3, 6, 9, 12]
            assert pool.submit(lambda_of, 4).result()() == 4


def case_an_abandoned_call_gives_its_value_to_no_other():
    async def calls():
        running = asyncio.wrap_future(pool.submit(slow_square, 5))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(running, 0.01)
        return await asyncio.gather(*(asyncio.wrap_future(pool.submit(square, x)) for x in range(5)))

    with limosa.Executor() as pool:
        if pool.is_root:
            with cases.raises(concurrent.futures.TimeoutError):
                next(pool.map(slow_square, range(9), timeout=0.01))
            assert asyncio.run(calls()) == [0, 1, 4, 9, 16]


def case_a_rank_that_cannot_be_reached_breaks_the_pool():
    class Unreachable:
        rank = 0

        def _push(self, *_):
            pass

        def _pull_from(self):
            raise MPI.Exception(MPI.ERR_OTHER)

    pool = _Pool(Unreachable(), 1)
    future: Future = Future()
    pool.submit(future, (square, (1,), {}))
    for call in (future.result, lambda: pool.submit(Future(), (square, (1,), {}))):
        with cases.raises(concurrent.futures.BrokenExecutor, "cannot be reached any more"):
            call()


def case_exceptions_reach_the_root():
    with limosa.Executor() as pool:
        if pool.is_root:
            error = pool.submit(broken, 5).exception()
            assert isinstance(error, KeyError) and "5 is not there" in str(error)
            if size > 1:
                assert "in broken" in str(error.__cause__)
            with cases.raises(Exception, "1 and 2"):
                pool.submit(special).result()
            if size > 1:
                for call in ((threading.Lock().acquire,), (lock_of, 1)):
                    with cases.raises(Exception, "pickle"):
                        pool.submit(*call).result()
            assert pool.submit(square, 3).result() == 9


def case_calls_in_the_queue_can_be_cancelled():
    with limosa.Executor(1) as pool:
        if pool.is_root:
            futures = [pool.submit(time.sleep, 0.2), *(pool.submit(square, x) for x in range(5))]
            assert futures[-1].cancel() and futures[-1].cancelled()
            assert [future.result() for future in futures[1:-1]] == [0, 1, 4, 9]
            futures = [pool.submit(time.sleep, 0.2), *(pool.submit(square, x) for x in range(5))]
            pool.shutdown(cancel_futures=True)
            assert all(future.cancelled() for future in futures[2:])
            with cases.raises(RuntimeError, "shutdown"):
                pool.submit(square, 1)


def case_several_threads_submit():
    with limosa.Executor() as pool:
        if pool.is_root:
            sums = []
            threads = [threading.Thread(target=lambda: sums.append(sum(pool.map(square, range(50))))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sums == [sum(x * x for x in range(50))] * 4


def case_callbacks_may_submit():
    done: Future = Future()

    def chain(future):
        if future.result() < 1000:
            pool.submit(square, future.result()).add_done_callback(chain)
        else:
            done.set_result(future.result())

    with limosa.Executor() as pool:
        if pool.is_root:
            pool.submit(square, 2).add_done_callback(chain)
            assert done.result(timeout=60) == 65536


def case_an_exception_ends_the_block_at_once():
    if rank == 0:
        with cases.raises(ZeroDivisionError), limosa.Executor(1) as pool:
            for _ in range(1000):
                pool.submit(time.sleep, 0.05)
            raise ZeroDivisionError
    else:
        with limosa.Executor(1):
            pass


def case_wrong_use():
    with cases.raises(errors.ArgumentError if rank == 0 else errors.PeerError, "max_workers=0"):
        limosa.Executor(0 if rank == 0 else None)
    with limosa.Executor() as pool:
        if not pool.is_root:
            with cases.raises(errors.RankError, "only rank 0", "is_root", "None on none"):
                pool.submit(square, 1)
        assert bool(pool) == pool.is_root


def case_an_executor_without_a_block_is_shut_down():
    pool = limosa.Executor()
    if pool:
        assert pool.submit(square, 3).result() == 9
        pool.shutdown()


def case_on_a_part_of_the_ranks():
    with world.split(rank % 2) as part, limosa.Executor(2, part) as pool:
        if pool.is_root:
            assert list(pool.map(square, range(9))) == [x * x for x in range(9)]


if __name__ == "__main__":
    cases.run()
