"""A master hands out work, a free process gets the next piece; a die tag ends it."""

import numpy
import pypar

WORKTAG, DIETAG = 1, 2
numprocs, myid = pypar.size(), pypar.rank()
worklist = [numpy.arange(10.0 * (i % 3 + 1)) + i for i in range(17)]


def master():
    results, given = {}, 0
    for slave in range(1, numprocs):
        pypar.send(given, slave, tag=WORKTAG)
        given += 1
    while len(results) < len(worklist):
        result, status = pypar.receive(source=pypar.any_source, tag=pypar.any_tag, return_status=True)
        assert status.tag == WORKTAG and 0 < status.source < numprocs and status.error == 0
        results[result["number"]] = result["sum"]
        if given < len(worklist):
            pypar.send(given, status.source, tag=WORKTAG)
            given += 1
        else:
            pypar.send("", status.source, tag=DIETAG)
    assert results == {i: w.sum() for i, w in enumerate(worklist)}
    print("%d pieces of work done" % len(results))


def slave():
    while True:
        number, status = pypar.receive(source=0, tag=pypar.any_tag, return_status=True)
        if status.tag == DIETAG:
            break
        pypar.send({"number": number, "sum": worklist[number].sum()}, 0, tag=WORKTAG)


if myid == 0:
    master()
else:
    slave()
pypar.finalize()
