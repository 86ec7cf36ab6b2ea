"""`limosa.Executor` has the behaviour of the executors of `concurrent.futures`. Any number of ranks."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from concurrent.futures import Future

import cases
import limosa
import numpy as np
from limosa import errors

world = limosa.world
rank, size = world.rank, world.size


def square(x):
    return x * x


def where(_):
    time.sleep(0.01)
    return limosa.world.rank


def broken(x):
    raise KeyError(f"{x} is not there")


def lambda_of(x):
    return lambda: x


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
                for call in ((lambda: 1,), (lambda_of, 1)):
                    with cases.raises(Exception):
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
            with cases.raises(errors.RankError, "only rank 0", "is_root"):
                pool.submit(square, 1)


def case_on_a_part_of_the_ranks():
    with world.split(rank % 2) as part, limosa.Executor(2, part) as pool:
        if pool.is_root:
            assert list(pool.map(square, range(9))) == [x * x for x in range(9)]


if __name__ == "__main__":
    cases.run()
