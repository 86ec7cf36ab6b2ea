"""pyparprocessing: the workers never get past start()."""

import math

import pypar
from pypar.ext import pyparprocessing

offset = 0.5

pyparprocessing.start()


def shifted_root(x):
    if x < 0:
        raise ValueError("no root of %d" % x)
    return math.sqrt(x) + offset


if __name__ == "__main__":
    pool = pyparprocessing.Pool()
    results = list(pool.imap(shifted_root, range(20)))
    assert sorted(results) == [math.sqrt(x) + offset for x in range(20)]
    if pypar.size() > 1:
        assert isinstance(next(pool.imap(shifted_root, [-1])), ValueError)
    pool.close()
    print("pool ok")
    pool.terminate()
