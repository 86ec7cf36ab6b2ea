"""What a rank says at MPI_Finalize about things that are left, and the other checks of `limosa run --check`."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

CHECK = ["--check"]
WORLD = "MPI_COMM_WORLD"
MPI_ERR_TRUNCATE = 15


def script(tmp_path, text: str):
    path = tmp_path / "script.py"
    begin = "import numpy as np\nfrom mpi4py import MPI\nworld, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank\n"
    path.write_text(begin + text)
    return path


def passes(job, ranks: int) -> None:
    """All ranks run to their end, and nothing is told."""
    outcome = job.wait(60)
    assert (outcome.code, outcome.err) == (0, ""), outcome.text
    assert outcome.out.count("right") == ranks


def test_a_message_whose_sender_waits_is_told_without_being_asked(job, python, tmp_path):
    """Rank 0 has given up its request, so that only rank 1 can say what is wrong."""
    path = script(
        tmp_path,
        "if rank == 0:\n"
        "    world.issend(b'', 1, tag=7).test()\n"
        "    world.send(None, 1, tag=8)\n"
        "else:\n"
        "    world.recv(source=0, tag=8)\n",
    )
    outcome = job([python, path]).wait(30)
    assert "limosa: rank 1, at MPI_Finalize: a message from rank 0 was never received: tag 7, " in outcome.err
    assert "on MPI_COMM_WORLD" in outcome.err
    assert outcome.code == 0


def test_a_message_that_nobody_waits_for_is_told_only_when_asked(job, python, tmp_path):
    path = script(tmp_path, "if rank == 0:\n    world.Send(np.zeros(3), 1, tag=7)\n")
    outcome = job([python, path]).wait(30)
    assert (outcome.code, outcome.err) == (0, "")
    outcome = job([python, path], options=CHECK).wait(30)
    assert outcome.code == 0
    told = "a message from rank 0 was never received: tag 7, 24 bytes, on MPI_COMM_WORLD"
    assert outcome.err == f"limosa: rank 1, at MPI_Finalize: {told}\n"


def test_requests_and_objects_are_told_with_the_line_of_the_program(job, python, tmp_path):
    path = script(
        tmp_path,
        "request = world.Irecv(np.zeros(2), 0, tag=5)\n"  # line 4
        "persistent = world.Send_init(np.zeros(2), 0, tag=6)\n"
        "part = world.Dup()\n"
        "part.Set_name('part')\n"
        "row = MPI.DOUBLE.Create_contiguous(3)\n"
        "group = world.Get_group()\n"
        "info = MPI.Info.Create()\n"
        "op = MPI.Op.Create(lambda a, b, t: None)\n",
    )
    outcome = job([python, path], n=1, options=CHECK).wait(30)
    assert outcome.code == 0, outcome.text
    begin = "limosa: rank 0, at MPI_Finalize: "
    for told in [
        f"a request was never completed: MPI_Irecv from rank 0, tag 5, 16 bytes, on {WORLD}, at {path}:4",
        f"a persistent request was never freed: MPI_Send_init to rank 0, tag 6, 16 bytes, on {WORLD}, at {path}:5",
        f"a communicator was never freed: part, made by MPI_Comm_dup, at {path}:6",
        "a datatype was never freed: an unnamed contiguous datatype of 24 bytes, made by MPI_Type_contiguous, "
        f"at {path}:8",
        f"a group was never freed: made by MPI_Comm_group, at {path}:9",
        f"an info was never freed: made by MPI_Info_create, at {path}:10",
        f"an operation was never freed: made by MPI_Op_create, at {path}:11",
    ]:
        assert begin + told in outcome.err
    assert len(outcome.err.splitlines()) == 7
    quiet = job([python, path], n=1).wait(30)
    assert (quiet.code, quiet.err) == (0, "")


def test_many_things_take_few_lines(job, python, tmp_path):
    path = script(
        tmp_path,
        "for tag in range(40):\n    world.Isend(np.zeros(2), 0, tag=tag)\nkept = [world.Dup() for i in range(90)]\n",
    )
    outcome = job([python, path], n=1, options=CHECK).wait(30)
    lines = outcome.err.splitlines()
    assert outcome.code == 0, outcome.text
    assert len(lines) == 11
    assert lines[0].endswith("tag 0, 16 bytes, on MPI_COMM_WORLD")
    assert lines[-1] == "limosa: rank 0, at MPI_Finalize: and 71 more"


def test_what_the_package_keeps_for_itself_is_not_told(job, python, tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import limosa\npart = limosa.world.split(0)\nlimosa.world.allreduce(1)\npart.bcast({'a': 1})\n")
    outcome = job([python, path], options=CHECK).wait(30)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_job_whose_ranks_disagree_about_the_checks_does_not_start(job, python, tmp_path):
    path = script(tmp_path, "")
    options = ["-n", "1", "-env", "LIMOSA_CHECK", "1", str(python), str(path), ":"]
    outcome = job([python, path], n=1, options=options).wait(30)
    assert outcome.code != 0
    assert "LIMOSA_CHECK is not the same for all processes of the job" in outcome.err


WAYS = [{}, {"LIMOSA_DEVICE": "messages"}, {"LIMOSA_HOSTS": "2"}]

POINT_TO_POINT = """
other = 1 - rank
def run(name, send, receive):
    '''Rank 1 must get the error, and the next message must be right.'''
    for count in (2, 200_000):
        buf = np.ones(count)
        room = np.zeros(count, "i8")
        text = "nothing"
        try:
            send(buf) if rank == 0 else receive(room)
        except MPI.Exception as error:
            text = f"{error.Get_error_class() == MPI.ERR_TYPE} {error}"
        world.sendrecv(0, other, 9, None, other, 9)
        if rank == 1:
            print(name, count, text, flush=True)

def started(make):
    def work(buf):
        request = make(buf)
        request.Start()
        request.Wait()
        request.Free()
    return work

def matched(buf):
    world.Mprobe(0, 3).Recv(buf)

def imatched(buf):
    world.Mprobe(0, 3).Irecv(buf).Wait()

def any_of(buf):
    MPI.Request.Waitany([world.Irecv(buf, 0, 3)])

send = lambda buf: world.Send(buf, 1, 3)
receive = lambda buf: world.Recv(buf, 0, 3)
run("blocking", send, receive)
run("synchronous", lambda buf: world.Ssend(buf, 1, 3), receive)
run("ready", lambda buf: world.Rsend(buf, 1, 3), receive)
run("background", lambda buf: world.Isend(buf, 1, 3).Wait(), lambda buf: world.Irecv(buf, 0, 3).Wait())
run("any", send, any_of)
run("wildcards", send, lambda buf: world.Recv(buf))
run("persistent", started(lambda buf: world.Send_init(buf, 1, 3)), started(lambda buf: world.Recv_init(buf, 0, 3)))
run("matched", send, matched)
run("imatched", send, imatched)
run("exchange", lambda buf: world.Sendrecv(buf, 1, 3, None, MPI.PROC_NULL),
    lambda buf: world.Sendrecv(None, MPI.PROC_NULL, 0, buf, 0, 3))
run("replace", lambda buf: world.Sendrecv_replace(buf, 1, 3, MPI.PROC_NULL),
    lambda buf: world.Sendrecv_replace(buf, MPI.PROC_NULL, 3, 0, 3))
MPI.Attach_buffer(MPI.Alloc_mem(1 << 22))
run("buffered", lambda buf: world.Bsend(buf, 1, 3), receive)
run("itself", lambda buf: None, lambda buf: MPI.COMM_SELF.Sendrecv(np.ones(len(buf)), 0, 3, buf, 0, 3))
MPI.Detach_buffer()
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_datatypes_that_differ_between_sender_and_receiver(job, python, tmp_path, way):
    outcome = job([python, script(tmp_path, POINT_TO_POINT)], options=CHECK, env=way).wait(60)
    assert outcome.code == 0, outcome.text
    lines = outcome.out.splitlines()
    assert len(lines) == 26, outcome.text
    for line in lines:
        assert " True " in line, line
        assert "the message holds MPI_DOUBLE, the receive expects MPI_INT64_T" in line or "MPI_LONG" in line, line


COLLECTIVES = """
size = world.size
mine = np.ones(4 * size, "i4" if rank == 1 else "f4")
room = np.zeros(4 * size, mine.dtype)
part = np.ones(4, mine.dtype)
def run(name, call):
    text = "nothing"
    try:
        call()
    except MPI.Exception as error:
        text = f"{error.Get_error_class() == MPI.ERR_TYPE} {error}"
    told = world.gather(text)
    if rank == 0:
        print(name, sum("True" in text and "do not match" in text for text in told), flush=True)

def completed(request):
    request.Wait()

def started(request):
    request.Start()
    try:
        request.Wait()
    finally:
        request.Free()

run("bcast", lambda: world.Bcast(mine))
run("gather", lambda: world.Gather(part, room))
run("gatherv", lambda: world.Gatherv(part, room))
run("scatter", lambda: world.Scatter(mine, part))
run("scatterv", lambda: world.Scatterv(mine, part))
run("allgather", lambda: world.Allgather(part, room))
run("alltoall", lambda: world.Alltoall(mine, room))
run("reduce", lambda: world.Reduce(mine, room))
run("allreduce", lambda: world.Allreduce(mine, room))
run("in_place", lambda: world.Allreduce(MPI.IN_PLACE, room))
run("scan", lambda: world.Scan(mine, room))
run("exscan", lambda: world.Exscan(mine, room))
run("reduce_scatter_block", lambda: world.Reduce_scatter_block(mine, part))
run("ibcast", lambda: completed(world.Ibcast(mine)))
run("iallreduce", lambda: completed(world.Iallreduce(mine, room)))
run("igather", lambda: completed(world.Igather(part, room)))
run("ialltoall", lambda: completed(world.Ialltoall(mine, room)))
run("bcast_init", lambda: started(world.Bcast_init(mine)))
run("allreduce_init", lambda: started(world.Allreduce_init(mine, room)))
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_datatypes_that_differ_in_collectives(job, python, tmp_path, way):
    outcome = job([python, script(tmp_path, COLLECTIVES)], n=4, options=CHECK, env=way).wait(60)
    assert outcome.code == 0, outcome.text
    told = dict(line.split() for line in outcome.out.splitlines())
    assert len(told) == 19, outcome.text
    assert {name for name, ranks in told.items() if ranks == "0"} == set(), outcome.text
    # Found by those that receive from rank 1, and rank 1 itself if it receives.
    assert [told[name] for name in ("bcast", "gather", "scatter", "allreduce", "ibcast")] == ["1", "1", "1", "4", "1"]


CORRECT = """
other = 1 - rank
world.Barrier()

def exchange(out, room):
    world.Sendrecv(out, other, 1, room, other, 1)

exchange([np.zeros(2, "i8"), MPI.LONG], [np.zeros(2, "i8"), MPI.INT64_T])
exchange([np.zeros(2, "i4"), MPI.INT], [np.zeros(9, "i4"), MPI.INTEGER])
exchange([np.zeros(8, "i1"), MPI.CHAR], [np.zeros(8, "i1"), MPI.UINT8_T])
exchange([np.zeros(2, "c16"), MPI.C_DOUBLE_COMPLEX], [np.zeros(4), MPI.DOUBLE])
exchange([np.zeros(2), 16, MPI.BYTE], [np.zeros(2), 2, MPI.DOUBLE])
exchange([np.zeros(2), 2, MPI.DOUBLE], [np.zeros(2), 16, MPI.PACKED])
exchange([np.zeros(0), MPI.DOUBLE], [np.zeros(3, "i4"), MPI.INT])
exchange([np.zeros(3, bool), MPI.C_BOOL], [np.zeros(3, "u1"), MPI.BYTE])

pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
pairs = MPI.Datatype.Create_contiguous(pair, 3).Commit()
column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
square = np.zeros((4, 4))
exchange([np.zeros(48, "u1"), 3, pair], [np.zeros(48, "u1"), 1, pairs])
exchange([np.zeros(16, "u1"), 1, pair], [np.zeros(48, "u1"), 1, pairs])
exchange([square, 1, column], [np.zeros(4), MPI.DOUBLE])
packed = np.zeros(100, "u1")
end = MPI.DOUBLE.Pack(np.ones(3), packed, 0, world)
exchange([packed, end, MPI.PACKED], [np.zeros(3), MPI.DOUBLE])
for each in (pair, pairs, column):
    each.Free()

if rank == 0:
    world.Send(np.zeros(5), 1, 4)
    world.send({"a": 1}, 1, 5)
else:
    status = MPI.Status()
    world.Probe(0, 4, status)
    assert status.Get_count(MPI.DOUBLE) == 5, status.Get_count(MPI.DOUBLE)
    world.Recv(np.zeros(9), 0, 4, status)
    assert status.Get_elements(MPI.DOUBLE) == 5
    assert world.recv(source=0, tag=5) == {"a": 1}
try:
    if rank == 0:
        world.Send(np.zeros(5), 1, 4)
    else:
        world.Recv(np.zeros(3), 0, 4)
except MPI.Exception as error:
    assert "40 bytes arrived for a receive buffer of 24 bytes" in str(error), error

total = np.zeros(1)
world.Allreduce(np.ones(1), total)
world.Bcast([total, 8, MPI.BYTE] if rank == 0 else [total, 1, MPI.DOUBLE])
objects = world.allgather({"rank": rank})
request = world.Ibcast(total)
world.sendrecv(1, other, 0, None, other, 0)  # before the broadcast is waited for
request.Wait()
room = np.zeros(3 * world.size)
counts = [3, 1]
world.Gatherv(np.ones(counts[rank]), [room, counts, [0, 3], MPI.DOUBLE] if rank == 0 else None)
world.Gather(MPI.IN_PLACE if rank == 0 else np.ones(3), room if rank == 0 else None)
print("right", flush=True)
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_nothing_is_said_of_types_that_match(job, python, tmp_path, way):
    passes(job([python, script(tmp_path, CORRECT)], options=CHECK, env=way), 2)


WRONG_ARGUMENTS = """
last = rank == world.size - 1
uncommitted = MPI.DOUBLE.Create_contiguous(1)
for turn in range(3):
    try:
        world.Bcast([np.zeros(1), 1, uncommitted if last else MPI.DOUBLE])
        assert not last
    except MPI.Exception as error:
        assert last and error.Get_error_class() == MPI.ERR_TYPE, error
    total = np.zeros(1)
    world.Allreduce(np.ones(1), total)
    assert total[0] == world.size
uncommitted.Free()
print("right", flush=True)
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_a_rank_with_wrong_arguments_stays_in_step(job, python, tmp_path, way):
    passes(job([python, script(tmp_path, WRONG_ARGUMENTS)], n=3, options=CHECK, env=way), 3)


WRONG_IN_BACKGROUND = """
last = rank == world.size - 1
uncommitted = MPI.DOUBLE.Create_contiguous(1)
for turn in range(100):
    try:
        if turn % 2:
            world.Ibcast([np.zeros(1), 1, uncommitted if last else MPI.DOUBLE]).Wait()
        else:
            world.Bcast_init([np.zeros(1), 1, uncommitted if last else MPI.DOUBLE]).Free()
        assert not last
    except MPI.Exception as error:
        assert last and error.Get_error_class() == MPI.ERR_TYPE, error
    if turn % 3 == 0:
        try:
            world.Bcast([np.zeros(1), 1, uncommitted if last else MPI.DOUBLE])
        except MPI.Exception as error:
            assert last and error.Get_error_class() == MPI.ERR_TYPE, error
    total = np.zeros(1)
    world.Iallreduce(np.ones(1), total).Wait()
    assert total[0] == world.size
    world.Barrier()
uncommitted.Free()
print("right", flush=True)
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_a_rank_with_wrong_arguments_in_the_background_stays_in_step(job, python, tmp_path, way):
    passes(job([python, script(tmp_path, WRONG_IN_BACKGROUND)], n=3, options=CHECK, env=way), 3)


LENGTHS = """
size = world.size

def run(name, call):
    count = {SHORT} if rank == {ODD} else {LONG}
    mine, room = np.ones(count * size), np.zeros(count * size)
    text = "nothing"
    try:
        call(mine, mine[:count], room, room[:count])
    except MPI.Exception as error:
        text = f"{error.Get_error_class() == MPI.ERR_TRUNCATE} {error}"
    told = world.gather(text)  # the communicator works
    if rank == 0:
        lines = sum("script.py" in each for each in told)
        print(name, sum("True" in each and "no data were moved" in each for each in told), lines, flush=True)

run("bcast", lambda mine, one, room, into: world.Bcast(one))
run("gather", lambda mine, one, room, into: world.Gather(one, room))
run("scatter", lambda mine, one, room, into: world.Scatter(mine, into))
run("allgather", lambda mine, one, room, into: world.Allgather(one, room))
run("alltoall", lambda mine, one, room, into: world.Alltoall(mine, room))
run("reduce", lambda mine, one, room, into: world.Reduce(one, into))
run("allreduce", lambda mine, one, room, into: world.Allreduce(one, into))
run("scan", lambda mine, one, room, into: world.Scan(one, into))
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
@pytest.mark.parametrize(("odd", "short", "long"), [(0, 2, 5000), (2, 100_000, 5)], ids=["root", "last"])
def test_different_lengths_are_an_error_of_all_ranks_whatever_algorithms_they_lead_to(
    job, python, tmp_path, way, odd, short, long
):
    text = LENGTHS.replace("{ODD}", str(odd)).replace("{SHORT}", str(short)).replace("{LONG}", str(long))
    outcome = job([python, script(tmp_path, text)], n=3, options=CHECK, env=way).wait(60)
    assert outcome.code == 0, outcome.text
    told = {name: (int(ranks), int(lines)) for name, ranks, lines in map(str.split, outcome.out.splitlines())}
    assert len(told) == 8, outcome.text
    assert {ranks for ranks, _ in told.values()} == {3}, outcome.text
    assert min(lines for _, lines in told.values()) > 0, outcome.text


OTHER_ALGORITHMS = """
size = world.size

def run(name, call):
    comm = world.Dup()
    count = {ODD_COUNT} if rank == {ODD} else {COUNT}
    mine, room = np.ones(count * size), np.zeros(count * size)
    told = []
    for each in (lambda: call(comm, mine, mine[:count], room, room[:count]), comm.Barrier):
        try:
            each()
        except MPI.Exception as error:
            told.append(f"{error.Get_error_class() in (MPI.ERR_TRUNCATE, MPI.ERR_COUNT)} {error}")
    told = world.gather(told)
    if rank == 0:
        print(name, told, flush=True)
    comm.Free()

calls = {
    "bcast": lambda comm, mine, one, room, into: comm.{I}bcast(one),
    "gather": lambda comm, mine, one, room, into: comm.{I}gather(one, room),
    "scatter": lambda comm, mine, one, room, into: comm.{I}scatter(mine, into),
    "allgather": lambda comm, mine, one, room, into: comm.{I}allgather(one, room),
    "alltoall": lambda comm, mine, one, room, into: comm.{I}alltoall(mine, room),
    "reduce": lambda comm, mine, one, room, into: comm.{I}reduce(one, into),
    "allreduce": lambda comm, mine, one, room, into: comm.{I}allreduce(one, into),
    "scan": lambda comm, mine, one, room, into: comm.{I}scan(one, into),
    "exscan": lambda comm, mine, one, room, into: comm.{I}exscan(one, into),
}
for name, call in calls.items():
    run(name, call if "{I}" != "I" else lambda *args, call=call: call(*args).Wait())
"""


OTHER_MESSAGE = r"rank \d sent \d+ bytes where (this rank|rank \d) expects \d+"
OTHER_LENGTH = r"rank \d called MPI_\S+ with (\d+|another number of) bytes, but rank \d called MPI_\S+ with "


@pytest.mark.parametrize("way", [*WAYS, {"LIMOSA_CMA": "0"}], ids=["here", "messages", "hosts", "copies"])
@pytest.mark.parametrize("odd", [0, 2], ids=["root", "last"])
@pytest.mark.parametrize("form", ["blocking", "background"])
def test_lengths_that_lead_to_different_algorithms_are_an_error(job, python, tmp_path, form, odd, way):
    """Without `--check`: the two lengths are named with their ranks, and no rank waits for ever."""
    counts = (1, 40_000) if odd else (40_000, 600)
    text = OTHER_ALGORITHMS.replace("{ODD}", str(odd)).replace("{ODD_COUNT}", str(counts[0]))
    text = text.replace("{COUNT}", str(counts[1]))
    if form == "background":
        text = text.replace("{I}", "I")
    else:
        text = re.sub(r"comm\.\{I\}(\w)", lambda found: "comm." + found.group(1).upper(), text)
    outcome = job([python, script(tmp_path, text)], n=3, env=way).wait(60)
    assert (outcome.code, outcome.err) == (0, ""), outcome.text
    lines = outcome.out.splitlines()
    assert len(lines) == 9, outcome.text
    for line in lines:
        assert "True MPI_" in line and "False" not in line, line
        # Of a call in shared memory the length is not known to ranks whose calls go by messages.
        assert re.search(rf"{OTHER_MESSAGE}|{OTHER_LENGTH}", line), line


COUNTS = """
def run(name, counts, reduce_scatter):
    text = "nothing"
    try:
        reduce_scatter(np.ones(6), np.zeros(counts[rank]), counts)
    except MPI.Exception as error:
        text = f"{error.Get_error_class()} {error}"
    told = world.gather(text)
    if rank == 0:
        print(name, *told, sep="\\n", flush=True)

run("wrong", [1, 2, 3] if rank < 2 else [2, 1, 3], world.Reduce_scatter)
run("right", [1, 2, 3], world.Reduce_scatter)
run("none", [0, 6, 0], world.Reduce_scatter)
run("background", [1, 2, 3], lambda *arguments: world.Ireduce_scatter(*arguments).Wait())
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_parts_of_a_reduction_that_differ_though_their_sum_is_the_same(job, python, tmp_path, way):
    outcome = job([python, script(tmp_path, COUNTS)], n=3, options=CHECK, env=way).wait(60)
    assert (outcome.code, outcome.err) == (0, ""), outcome.text
    lines = outcome.out.splitlines()
    assert [line for line in lines if " " not in line] == [
        "wrong",
        *["right", *["nothing"] * 3],
        *["none"] + ["nothing"] * 3,
        "background",
        *["nothing"] * 3,
    ]
    told = lines[1:4]
    assert all(line.startswith(f"{MPI_ERR_TRUNCATE} MPI_Reduce_scatter: ") for line in told), told
    for sender, receiver, passed, expected in ((2, 0, 16, 8), (2, 1, 8, 16)):
        passes = f"rank {sender} called MPI_Reduce_scatter with {passed} bytes for rank {receiver}, at "
        assert passes in told[receiver], told
        assert f"but rank {receiver} called MPI_Reduce_scatter and expects {expected} bytes, at " in told[receiver], (
            told
        )


LAST_CALL = """
count = {ODD_COUNT} if rank == {ODD} else {COUNT}
one, into = np.ones(count), np.zeros(count)
mine, room = np.ones(count * world.size), np.zeros(count * world.size)
try:
    {CALL}
except MPI.Exception as error:
    print(error.Get_error_class() in (MPI.ERR_TRUNCATE, MPI.ERR_COUNT), error, flush=True)
"""


@pytest.mark.parametrize("way", WAYS[1:], ids=["messages", "hosts"])
@pytest.mark.parametrize(
    "call",
    [
        "Bcast(one)",
        "Ibcast(one).Wait()",
        "Reduce(one, into)",
        "Ireduce(one, into).Wait()",
        "Allreduce(one, into)",
        "Iallreduce(one, into).Wait()",
        "Alltoall(mine, room)",
    ],
)
def test_lengths_that_differ_in_the_last_call_are_an_error(job, python, tmp_path, call, way):
    """Without `--check`: ranks that have completed the call leave, while other ranks wait for messages."""
    for odd, counts in ((0, (40_000, 600)), (0, (600, 40_000)), (2, (1, 40_000)), (2, (40_000, 1))):
        text = LAST_CALL.replace("{ODD}", str(odd)).replace("{ODD_COUNT}", str(counts[0]))
        text = text.replace("{COUNT}", str(counts[1])).replace("{CALL}", f"world.{call}")
        outcome = job([python, script(tmp_path, text)], n=3, env=way, options=["--on-hang", "abort"]).wait(60)
        assert (outcome.code, outcome.err) == (0, ""), outcome.text
        told = outcome.out.splitlines()
        assert told, outcome.text
        assert all(line.startswith("True ") for line in told), outcome.text
        assert all(re.search(f"{OTHER_MESSAGE}|{OTHER_LENGTH}", line) for line in told), outcome.text


BETWEEN_GROUPS = """
part = world.Split(rank % 2, rank)
inter = part.Create_intercomm(0, world, 1 - rank % 2)
uncommitted = MPI.DOUBLE.Create_contiguous(1)
count = 7 if rank == 3 else 5

def run(name, call):
    text = "nothing"
    try:
        call()
    except MPI.Exception as error:
        text = f"{error.Get_error_class()} {error}"
    told = world.gather(text)
    if rank == 0:
        print(name, *told, sep="\\n", flush=True)

run("between", lambda: inter.Allreduce(np.ones(count), np.zeros(count)))
run("part", lambda: part.Bcast(np.ones(count)))
datatype = uncommitted if rank == 2 else MPI.DOUBLE
run("wrong", lambda: world.Allreduce([np.ones(count), count, datatype], [np.zeros(count), count, datatype]))
run("right", lambda: world.Allreduce(np.ones(5), np.zeros(5)))
for each in (uncommitted, inter, part):
    each.Free()
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_different_lengths_between_groups_in_parts_and_beside_wrong_arguments(job, python, tmp_path, way):
    outcome = job([python, script(tmp_path, BETWEEN_GROUPS)], n=4, options=CHECK, env=way).wait(60)
    assert outcome.code == 0, outcome.text
    lines = outcome.out.splitlines()
    told = {lines[at]: lines[at + 1 : at + 5] for at in range(0, 20, 5)}
    is_truncated = {name: [f"{MPI_ERR_TRUNCATE} MPI" in text for text in texts] for name, texts in told.items()}
    assert is_truncated["between"] == [True] * 4, outcome.text
    told_0 = "rank 1 of the remote group called MPI_Allreduce with 56 bytes for rank 0, at "
    assert told_0 in told["between"][0], outcome.text
    assert "but rank 0 called MPI_Allreduce and expects 40 bytes, at " in told["between"][0], outcome.text
    assert is_truncated["part"] == [False, True, False, True], outcome.text
    assert "rank 0 called MPI_Bcast with 40 bytes for rank 1, at " in told["part"][3], outcome.text
    # The rank with wrong arguments has its own error, and is in step afterwards.
    assert is_truncated["wrong"] == [True, True, False, True], outcome.text
    assert "not committed" in told["wrong"][2], outcome.text
    assert told["right"] == ["nothing"] * 4, outcome.text


AHEAD = """
buffer = np.zeros(10)
if rank == 0:
    for _ in range(2):
        world.Ibcast(buffer).Wait()
        world.Iscan(np.ones(1), np.zeros(1)).Wait()
        world.Igather(buffer, np.zeros(10 * world.size), root=1).Wait()
    for other in range(1, world.size):
        world.send("done", other)
else:
    world.recv(source=0)  # rank 0 has completed its calls
    for _ in range(2):
        requests = [world.Ibcast(buffer), world.Iscan(np.ones(1), np.zeros(1))]
        MPI.Request.Waitall([*requests, world.Igather(buffer, np.zeros(10 * world.size), root=1)])
print("right", flush=True)
"""


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
def test_a_rank_that_needs_no_data_completes_before_other_ranks_call(job, python, tmp_path, way):
    passes(job([python, script(tmp_path, AHEAD)], n=3, options=CHECK, env=way), 3)


DIFFERENT = {
    # No rank waits for the other rank.
    "roots": ("world.Ibcast(np.zeros(1), root=rank).Wait()", ["MPI_Ibcast with root 0", "MPI_Ibcast with root 1"]),
    # Rank 1 waits; rank 0 calls when all inquiries have been made.
    "functions": (
        "world.Ibarrier().Wait() if rank else (time.sleep(2), world.Ibcast(np.zeros(1)).Wait())",
        ["MPI_Ibcast", "MPI_Ibarrier"],
    ),
    # Both have set up shared memory for blocking calls.
    "a_barrier": (
        "world.Barrier(), (world.Barrier() if rank else world.Bcast(np.zeros(1)))",
        ["MPI_Bcast", "MPI_Barrier"],
    ),
    "a_blocking_call": (
        "world.Ibarrier().Wait() if rank else (time.sleep(2), world.Barrier())",
        ["MPI_Barrier", "MPI_Ibarrier"],
    ),
}


@pytest.mark.parametrize("way", WAYS, ids=["here", "messages", "hosts"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_different_calls_are_told_with_their_lines(job, python, tmp_path, name, way):
    call, (first, second) = DIFFERENT[name]
    outcome = job([python, script(tmp_path, f"import time\n{call}\n")], options=CHECK, env=way).wait(60)
    calls = rf"rank 0 called {first}, at .*script.py:5, but rank 1 called {second}, at .*script.py:5"
    assert re.search(calls, outcome.err), outcome.text


MEMORY = """
import ctypes

class Heap(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Heap
one, room = np.ones(4), np.zeros(4 * world.size)
into, right, left = room[:4], (rank + 1) % world.size, (rank - 1) % world.size

def allocated():
    world.Barrier()
    world.Barrier()
    return mallinfo().uordblks + mallinfo().hblkhd

def blocking():
    world.Bcast(one)
    world.Gather(one, room)
    world.Allreduce(one, into)
    world.Scan(one, into)

def background():
    MPI.Request.Waitall([world.Ibcast(one), world.Iallreduce(one, into), world.Igather(one, room), world.Ibarrier()])

def persistent():
    for request in (world.Bcast_init(one), world.Allreduce_init(one, into)):
        request.Start()
        request.Wait()
        request.Free()
    world.Send_init(one, right).Free()

def messages():
    requests = [world.Irecv(into, left, 2), world.Isend(one, right, 2), world.Irecv(room, left, 3)]
    requests[2].Cancel()
    MPI.Request.Waitall(requests)
    world.Sendrecv(one, right, 1, into, left, 1)

def communicators():
    part = world.Split(0, rank)
    part.Allreduce(one, into)
    part.Ibarrier().Wait()
    part.Free()

def datatypes():
    datatype = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
    world.Bcast([one, 1, datatype])
    datatype.Free()

def errors():
    try:
        world.Send(one, world.size)
    except MPI.Exception:
        pass

def growth(each, rounds):
    before = allocated()
    for _ in range(rounds):
        each()
    return allocated() - before

for each in (blocking, background, persistent, messages, communicators, datatypes, errors):
    growth(each, 2500)
    print(each.__name__, rank, min(growth(each, 1000), growth(each, 1000)), flush=True)
"""


@pytest.mark.parametrize(
    ("options", "way"), [(CHECK, WAYS[0]), (CHECK, WAYS[1]), ([], WAYS[0])], ids=["here", "messages", "unchecked"]
)
def test_the_memory_of_calls_is_given_back(job, python, tmp_path, options, way):
    """Allocated bytes of the heap are counted before and after 1000 rounds, twice: tables grow and shrink."""
    outcome = job([python, script(tmp_path, MEMORY)], options=options, env=way).wait(240)
    assert outcome.code == 0, outcome.text
    growth = {(name, rank): int(bytes) for name, rank, bytes in map(str.split, outcome.out.splitlines())}
    assert len(growth) == 14, outcome.text
    assert max(growth.values()) < 20_000, growth
