"""All processes send to all before any receives: buffered sends."""

import numpy
import pypar

p, P = pypar.rank(), pypar.size()
others = [q for q in range(P) if q != p]
array = numpy.arange(30000.0) * (p + 1)
thing = {"from": p, "list": list(range(5000))}
text = "text of %d" % p

total = 0
for q in others:
    for x in (array, thing, text):
        total = pypar.push_for_alloc(x)
    total = pypar.push_for_alloc(array, bypass=True)
assert total >= len(others) * 2 * array.nbytes
assert pypar.alloc() == total
pypar.attach()
for q in others:
    pypar.bsend(array, q, tag=3)
    pypar.bsend(thing, q, tag=4)
    pypar.bsend(text, q, tag=5)
    pypar.bsend(array, q, tag=6, bypass=True)
space = numpy.zeros(30000)
for q in others:
    assert pypar.receive(q, tag=5) == "text of %d" % q
    assert pypar.receive(q, tag=4)["from"] == q
    assert numpy.array_equal(pypar.receive(q, tag=3), numpy.arange(30000.0) * (q + 1))
    pypar.receive(q, buffer=space, tag=6, bypass=True)
    assert numpy.array_equal(space, numpy.arange(30000.0) * (q + 1))
pypar.detach_and_dealloc()
for f in (pypar.alloc, pypar.attach):
    try:
        f()
    except RuntimeError as error:
        assert "alloc()" in str(error)
    else:
        raise AssertionError(f)
print("all arrived")
pypar.finalize()
