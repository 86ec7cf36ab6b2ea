"""One pass over all functions with all kinds of data; the return values are what counts, and arrays filled in place."""

import warnings

import numpy as N
import pypar

myid, numproc = pypar.rank(), pypar.size()
last = numproc - 1
assert numproc > 1 and pypar.initialized() == 1 and pypar.Initialized() == 1


def raises(kind, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("no %s" % kind.__name__)


# --- messages of every kind, to a neighbour and back ------------------------------------------------------------------

things = [
    N.arange(10),
    N.arange(6, dtype="i").reshape(2, 3),
    N.array([1.5, 2.5], "f"),
    N.array(3.25),
    N.array([[1 + 2j, 3]], "D"),
    N.array([1j], "F"),
    N.zeros((3, 0)),
    N.array([True, False]),
    N.arange(20.0).reshape(4, 5)[:, 1:3],
    N.asfortranarray(N.arange(6.0).reshape(2, 3)),
    N.array(["words", "here"]),
    N.arange(3.0).astype(">d"),
    "text with ä and \0",
    b"\x00\xff bytes",
    bytearray(b"changeable"),
    "",
    "long" * 5000,
    ["a", "general", {"structure": (1, None)}],
    list(range(9000)),
    None,
]
for x in things:
    for vanilla in (False, True):
        if myid == 0:
            pypar.send(x, 1, vanilla=vanilla)
            back, status = pypar.receive(1, vanilla=vanilla, return_status=True)
            assert type(back) is type(x)
            if isinstance(x, N.ndarray):
                assert back.dtype == x.dtype and back.shape == x.shape and N.array_equal(back, x)
                if not vanilla and x.dtype.char in "lifdFD" and x.dtype.isnative:
                    assert status.bytes() == x.nbytes
                    assert status.length == x.size * (2 if x.dtype.kind == "c" else 1)
            else:
                assert back == x
            assert (status.source, status.tag, status.error) == (1, pypar.default_tag, 0)
            assert repr(status).startswith("Pypar Status Object")
        elif myid == 1:
            pypar.send(pypar.receive(0, vanilla=vanilla), 0, vanilla=vanilla)

# --- messages into buffers --------------------------------------------------------------------------------------------

A = N.arange(12.0).reshape(3, 4)
if myid == 0:
    for _ in range(2):
        pypar.send(A, last, use_buffer=True)
    pypar.send([1, 2, 3], last, use_buffer=True, bypass=True)
    pypar.send("hello", last, use_buffer=True)
    pypar.send(b"hello", last, use_buffer=True)
    pypar.send("hello", last, use_buffer=True)
    pypar.send({"a": 1}, last, use_buffer=True)
    pypar.raw_send(A, last)
    pypar.send(A[:2], last, use_buffer=True)
elif myid == last:
    B = N.zeros((4, 3))
    assert pypar.receive(0, buffer=B) is B and N.array_equal(B.ravel(), A.ravel()), "the buffer keeps its shape"
    C = N.zeros((4, 3)).T
    assert pypar.receive(0, buffer=C) is C and N.array_equal(C, A), "also one that is not contiguous"
    ints, status = pypar.receive(0, buffer=N.zeros(3, "l"), bypass=True, return_status=True)
    assert list(ints) == [1, 2, 3] and status.length == 3
    assert pypar.receive(0, buffer=" " * 8) == "hello   ", "a string keeps the length of its buffer"
    assert pypar.receive(0, buffer=b"12345678") == b"hello678"
    space = bytearray(5)
    assert pypar.receive(0, buffer=space) is space and space == b"hello"
    assert pypar.receive(0, buffer={}) == {"a": 1}
    x, status = pypar.raw_receive(N.zeros((3, 4)), 0, return_status=True)
    assert N.array_equal(x, A) and status.bytes() == 96
    x, status = pypar.receive(0, buffer=N.zeros(12), return_status=True)
    assert status.length == 8 and list(x[8:]) == [0] * 4, "shorter than the buffer"

# --- tags -------------------------------------------------------------------------------------------------------------

if myid == 0:
    for tag in (7, 8, pypar.default_tag):
        pypar.send("tag %d" % tag, N.int64(1), tag=N.int32(tag))
    pypar.send([9] * 400, 1, tag=9)
    pypar.send([10] * 400, 1, tag=10)
elif myid == 1:
    assert pypar.receive(N.int64(0)) == "tag 1", "without a tag only the default tag is received"
    assert pypar.receive(pypar.any_source, tag=8) == "tag 8"
    value, status = pypar.receive(0, tag=pypar.any_tag, return_status=True)
    assert value == "tag 7" and status.tag == 7
    assert pypar.receive(0, tag=10)[0] == 10 and pypar.receive(0, tag=9)[0] == 9

# --- broadcast --------------------------------------------------------------------------------------------------------

for root in range(numproc):
    A = N.arange(8.0).reshape(2, 4) if myid == root else N.zeros((2, 4))
    assert pypar.broadcast(A, root) is A and A[1, 3] == 7
    view = N.zeros((4, 2)).T
    view[...] = A if myid == root else 0
    pypar.broadcast(view, root)
    assert N.array_equal(view, A)
    if myid != root:
        A[...] = 0
    assert pypar.broadcast(A, root, bypass=True) is None and A[1, 3] == 7
    assert pypar.broadcast("root's ä" if myid == root else " " * 9, root) == "root's ä"
    assert pypar.broadcast({"x": root} if myid == root else None, root) == {"x": root}
    assert N.array_equal(pypar.bcast(A, root, vanilla=True), A)
    space = bytearray(b"mine" if myid == root else b"....")
    assert pypar.broadcast(space, root) == b"mine" == space

# --- scatter and gather -----------------------------------------------------------------------------------------------

x = N.arange(3 * numproc + 1.0)
part = pypar.scatter(x, 0)
assert N.array_equal(part, x[3 * myid : 3 * myid + 3]), "what is left over is dropped"
space = N.zeros(3)
assert pypar.scatter(x if myid == last else None, last, buffer=space) is space and N.array_equal(space, part)
space[...] = 0
pypar.raw_scatter(x, space, 0)
assert N.array_equal(space, part)
rows = N.arange(2 * numproc * 3).reshape(2 * numproc, 3)
assert N.array_equal(pypar.scatter(rows, last), rows[2 * myid : 2 * myid + 2])
assert pypar.scatter("abc" * numproc, 0) == "abc"

whole = pypar.gather(part, last)
assert whole.shape == (3 * numproc,) and (myid != last or N.array_equal(whole, x[:-1]))
whole = pypar.gather(rows[2 * myid : 2 * myid + 2], 0)
assert whole.shape == rows.shape and (myid or N.array_equal(whole, rows))
space = N.full(3 * numproc, -1.0)
assert pypar.gather(part, 0, buffer=space) is space
assert N.array_equal(space, x[:-1]) if myid == 0 else N.all(space == -1)
pypar.raw_gather(part, space, last)
text = pypar.gather("p%d" % (myid % 10), 0)
assert len(text) == 2 * numproc and (myid or text == "".join("p%d" % (i % 10) for i in range(numproc)))

# --- reduce -----------------------------------------------------------------------------------------------------------

everybody = N.array([N.arange(4) + r + 1 for r in range(numproc)])
for op, function in [
    (pypar.SUM, N.add),
    (pypar.PROD, N.multiply),
    (pypar.MAX, N.maximum),
    (pypar.MIN, N.minimum),
    (pypar.BAND, N.bitwise_and),
    (pypar.BOR, N.bitwise_or),
    (pypar.BXOR, N.bitwise_xor),
    (pypar.LAND, N.logical_and),
    (pypar.LOR, N.logical_or),
    (pypar.LXOR, N.logical_xor),
]:
    mine, expected = everybody[myid].copy(), function.reduce(everybody)
    space = N.full(4, -1)
    assert pypar.reduce(mine, op, 0, buffer=space) is space
    assert N.array_equal(space, expected) if myid == 0 else N.all(space == -1)
    short = pypar.reduce(mine, op, last)
    assert short.shape == (4,) and (myid != last or N.array_equal(short, expected))
    pypar.raw_reduce(mine, space, op, last)
    assert myid != last or N.array_equal(space, expected)
    assert pypar.reduce(mine, op, 0, buffer=space, bypass=True) is None
    pypar.reduce(mine, op, 0, buffer=mine)
    assert myid or N.array_equal(mine, expected), "in place"
total = pypar.reduce(N.array(myid + 0.5), pypar.SUM, 0)
assert myid or total == sum(r + 0.5 for r in range(numproc))

# --- wrong use --------------------------------------------------------------------------------------------------------

raises(AssertionError, "must be an integer", pypar.send, 1, "0")
raises(AssertionError, "reserved", pypar.send, 1, 0, tag=pypar.control_tag)
raises(AssertionError, "reserved", pypar.receive, 0, tag=pypar.control_tag)
raises(AssertionError, "must be an integer", pypar.receive, 0.5)
raises(AssertionError, "must be an integer", pypar.broadcast, 1, None)
raises(TypeError, "works with arrays", pypar.scatter, [1, 2], 0)
raises(TypeError, "works with arrays", pypar.gather, {"a": 1}, 0)
raises(TypeError, "an array of object", pypar.reduce, N.array([None]), pypar.SUM, 0)
raises(AssertionError, "same type", pypar.reduce, N.zeros(2), pypar.SUM, 0, buffer=N.zeros(2, "f"))
raises(RuntimeError, "11", pypar.reduce, N.zeros(2), 11, 0)
raises(RuntimeError, "rank", pypar.send, 1, numproc)
if myid == 0:
    raises(RuntimeError, "equally long", pypar.reduce, N.zeros(2), pypar.SUM, 0, buffer=N.zeros(3))
    pypar.send(N.zeros(9), 1)
    pypar.send(N.zeros(9), 1, use_buffer=True)
    pypar.send(N.zeros(9000), 1, use_buffer=True)
    pypar.send("still here", 1)
elif myid == 1:
    raises(RuntimeError, "use_buffer=True", pypar.receive, 0, buffer=N.zeros(99))
    raises(RuntimeError, "buffer=", pypar.receive, 0)
    raises(RuntimeError, "buffer=", pypar.receive, 0)
    assert pypar.receive(0) == "still here"

# --- the rest ---------------------------------------------------------------------------------------------------------

assert [pypar.balance(29, 4, i) for i in range(5)] == [(0, 8), (8, 15), (15, 22), (22, 29), (29, 29)]
assert pypar.control_sep == ":" and pypar.control_data_max_size == 64 and pypar.max_tag >= 32767
assert pypar.create_control_info(N.zeros((2, 3))) == ["array", "d", 6, (2, 3)]
assert pypar.create_control_info("abc") == ["string", "c", 3, ()]
assert pypar.create_control_info([1], return_object=True)[0][0] == "vanilla"
if myid == 0:
    pypar.send_control_info(["array", "d", 6, (2, 3)], 1)
elif myid == 1:
    assert pypar.receive_control_info(pypar.any_source, return_source=True) == (["array", "d", 6, (2, 3)], 0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert pypar.Get_processor_name() == pypar.get_processor_name() and pypar.Wtime() <= pypar.time()
assert len(caught) == 2 and "obsolete" in str(caught[0].message)
pypar.barrier()
pypar.finalize()
pypar.Finalize()
print("processor %d of %d is content" % (pypar.rank(), pypar.size()))
