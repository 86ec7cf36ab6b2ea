"""Small programs in one: pi by quadrature, word counting by map and reduce, the extension modules."""

import numpy
import pypar
from pypar.ext.functional import balanced, collected, distributed, distributed_generator
from pypar.ext.handympi import RunMasterSlave, foreach

p, P = pypar.rank(), pypar.size()

# pi, with a sum of single numbers that have no buffer
n = 4000
h = 1.0 / n
local = numpy.array([4 * h * sum(1 / (1 + (h * (i + 0.5)) ** 2) for i in range(p, n, P))])
pi = pypar.reduce(local, pypar.SUM, 0)
if p == 0:
    assert abs(pi[0] - numpy.pi) < 1e-6
    print("pi is about %.5f" % pi[0])

# word counts: the master sends texts out and merges what comes back
texts = ["one two two", "three two one three", "four", "one"] * 3
counts = {}
for text in distributed(texts):
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
if p == 0:
    for source in range(1, P):
        for word, count in pypar.receive(source).items():
            counts[word] = counts.get(word, 0) + count
    assert counts == {"one": 9, "two": 9, "three": 6, "four": 3}, counts
    print("words counted")
else:
    pypar.send(counts, 0)

# squares of what a generator makes, in a number that does not divide evenly
for number in (0, 1, P, 3 * P + 1):
    squares = list(collected([x * x for x in distributed_generator(iter(range(number)))]))
    assert sorted(squares) == ([x * x for x in range(number)] if p == 0 else [])
assert list(balanced(range(7))) == list(range(p, 7, P))

results = foreach(lambda x: x + 1, range(11), return_=True, finalRun=False)
if p == 0:
    assert results == list(range(1, 12)), results
    print("foreach ok")
else:
    assert results == "You don't get results in this rank!:%d" % p


class Master:
    def __init__(self):
        self.found = {}

    def __call__(self, number, result):
        self.found[number] = result


class Slave:
    def __call__(self, parameter):
        return "done " + parameter


master = RunMasterSlave(Master, Slave, ["a", "b", "c"])
assert p == 0, "after the last run only the first processor goes on"
assert master.found == {0: "done a", 1: "done b", 2: "done c"}
print("master and slaves ok")
