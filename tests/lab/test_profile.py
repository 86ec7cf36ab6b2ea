"""Profiles: what `limosa run --profile` records of programs whose calls are known, and how it is shown."""

import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from pathlib import Path

import limosa
import pytest
from jobs import PATIENCE, Job, ranks_of, until, until_rank_waits_in
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.profile import files, names, summary, waiting

BIN = Path(sysconfig.get_path("scripts"))

PROGRAM = r"""
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char block[1 << 20];

static void *calls(void *none)
{
    int size;
    for (int i = 0; i < 50; i++)
        MPI_Comm_size(MPI_COMM_SELF, &size);
    return none;
}

int main(int argc, char **argv)
{
    int rank, ranks, provided;
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* 100 messages of 1000 bytes and 10 of 64 KB from each even rank to the next one; longer receives are posted. */
    for (int i = 0; i < 110; i++) {
        int bytes = i < 100 ? 1000 : 1 << 16;
        if (rank % 2 == 0 && rank + 1 < ranks)
            MPI_Send(block, bytes, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
        else if (rank % 2)
            MPI_Recv(block, sizeof block, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(what, "kill") && rank == 1)
        kill(getpid(), SIGKILL);
    /* In a communicator in which the ranks are the other way round: to the last rank of the world. */
    MPI_Comm back;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
    if (rank == 0 && ranks > 1)
        MPI_Send(block, 10, MPI_INT, 0, 1, back);
    if (rank == ranks - 1 && ranks > 1)
        MPI_Recv(block, 10, MPI_INT, ranks - 1, 1, back, MPI_STATUS_IGNORE);
    MPI_Comm_free(&back);
    double value = 1, sum;
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(rank ? (void *)&value : MPI_IN_PLACE, 1, MPI_DOUBLE, block, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 3000 && !strcmp(what, "objects"); i++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
    /* As many calls as the second word says, from two places, of several lengths. */
    for (int i = 0, found; !strcmp(what, "many") && i < atoi(argv[2]) / 2; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        MPI_Pack_size(i % 1000, MPI_INT, MPI_COMM_SELF, &found);
    }
    if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, calls, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "calls.c").write_text(PROGRAM)
    made = folder / "calls"
    subprocess.run([BIN / "mpicc", "-g", "-pthread", folder / "calls.c", "-o", made], check=True)
    return made


def run(*words, cwd, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    env |= {"COLUMNS": "160", **variables}
    command = [BIN / "limosa", "run", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


def recording(made, events=0):
    """Options of a job that is recorded as with --profile.

    The option also shows the profile at the end, which takes most of the CPU time of a short job.
    """
    made.mkdir()
    profiler = Path(sysconfig.get_path("data")) / "lib" / "limosa" / "liblimosa_profile.so"
    variables = {"LD_PRELOAD": f"{profiler}:libmpi_abi.so.1", "LIMOSA_PROFILE": made, "LIMOSA_PROFILE_EVENTS": events}
    return [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]


def test_calls_bytes_and_peers_are_those_of_the_program(program, tmp_path):
    done = run("--profile=made", "-n", "3", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MPI_Allreduce" in done.stderr
    assert "3 ranks ran for" in done.stderr
    processes = files.read(tmp_path / "made")
    assert [process.rank for process in processes] == [0, 1, 2]
    assert all(process.size == 3 and process.wall > 0 for process in processes)
    first, second, third = processes
    assert first.functions["MPI_Send"].calls == 111
    assert first.functions["MPI_Send"].bytes == 100 * 1000 + 10 * 65536 + 40
    assert first.peers == {1: (110, 755_360), 2: (1, 40)}
    # What has arrived counts, not the room for it.
    assert second.functions["MPI_Recv"].bytes == 755_360
    assert third.functions["MPI_Recv"].bytes == 40
    assert list(second.sizes["MPI_Recv"].nonzero()[0]) == [10, 17]
    for process in processes:
        assert process.functions["MPI_Allreduce"].calls == 7
        assert process.functions["MPI_Allreduce"].bytes == 56
        assert process.objects["MPI_Allreduce", "communicator", 0x101].calls == 7
        assert process.functions["MPI_Gather"].bytes == (0 if process.rank == 0 else 8)
        assert process.functions["MPI_Finalize"].calls == 1
        assert process.seconds < 10 * process.wall + 1
    assert summary.matrix(processes).tolist() == [[0, 755_360, 40], [0, 0, 0], [0, 0, 0]]
    assert (tmp_path / "made" / "matrix.csv").read_text() == "0,755360,40\n0,0,0\n0,0,0\n"
    assert "<svg" in (tmp_path / "made" / "report.html").read_text()


def test_times_are_those_of_the_clock(tmp_path):
    script = tmp_path / "wait.py"
    script.write_text(
        "import time\nfrom mpi4py import MPI\nw = MPI.COMM_WORLD\nw.Barrier()\nt = time.perf_counter()\n"
        "if w.rank == 0:\n    input()\n    w.Send(b'', 1)\nelse:\n    w.Recv(bytearray(1), 0)\n"
        "    print(time.perf_counter() - t)\n"
    )
    command = [BIN / "limosa", "run", *recording(tmp_path / "made"), "-n", "2", script]
    job = Job(command, stdin=subprocess.PIPE, cwd=tmp_path)

    def receives() -> bool:
        threads = [thread for rank in ranks_of(job.process.pid) for thread in rank["threads"]]
        return any(thread["call"].startswith("MPI_Recv") for thread in threads)

    until(receives, "rank 1 does not come to its receive")
    begin = time.perf_counter()
    time.sleep(0.4)
    least = time.perf_counter() - begin
    job.process.stdin.write("\n")
    done = job.wait(30)
    assert done.code == 0, done.err
    functions = files.read(tmp_path / "made")[1].functions
    recorded = functions["MPI_Recv_c" if "MPI_Recv_c" in functions else "MPI_Recv"]
    assert recorded.calls == 1
    # The call lies within the time that the program has measured, and the sleep within the call.
    assert 0.99 * least < recorded.longest < 1.01 * float(done.out)


def test_a_call_is_named_by_the_users_line_in_python(tmp_path):
    script = tmp_path / "lines.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "import threading\n"
        "def exchange(world):\n"
        "    world.Barrier()\n"  # line 4
        "for _ in range(3): exchange(MPI.COMM_WORLD)\n"
        "MPI.COMM_WORLD.Barrier()\n"  # line 6
        "thread = threading.Thread(target=MPI.COMM_SELF.Barrier)\n"
        "thread.start(); thread.join()\n"
        "MPI.COMM_WORLD.allreduce(1)\n"  # line 9, inside mpi4py
    )
    done = run(*recording(tmp_path / "made"), "-n", "2", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = summary.sites(files.read(tmp_path / "made"), None).rows
    calls = {(row[0], row[1]): row[2] for row in rows}
    folder = tmp_path.name
    assert calls[f"{folder}/lines.py:4 in exchange", "MPI_Barrier"] == "6"
    assert calls[f"{folder}/lines.py:6 in <module>", "MPI_Barrier"] == "2"
    assert any(place == f"{folder}/lines.py:9 in <module>" for place, _ in calls)
    with_callers = {row[0] for row in summary.sites(files.read(tmp_path / "made"), None, callers=2).rows}
    assert f"{folder}/lines.py:4 in exchange < {folder}/lines.py:5 in <module>" in with_callers
    # The total is that of the function: nothing is counted twice or not at all.
    barriers = sum(int(count) for (_, name), count in calls.items() if name == "MPI_Barrier")
    assert barriers == sum(process.functions["MPI_Barrier"].calls for process in files.read(tmp_path / "made"))


@pytest.mark.skipif(not shutil.which("addr2line"), reason="addr2line (Debian: binutils) finds the lines of C programs")
def test_a_call_is_named_by_its_line_in_c(program, tmp_path):
    done = run(*recording(tmp_path / "made"), "-n", "2", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = PROGRAM.splitlines()
    rows = summary.sites(files.read(tmp_path / "made"), None).rows
    found = [row[0] for row in rows if row[1] == "MPI_Send"]
    assert len(found) == 2
    for place in found:
        assert place.endswith(" in main")
        number = int(place.split("calls.c:")[1].split()[0])
        assert "MPI_Send" in lines[number - 1]


# A late rank goes on when it has read a line of its turn.
LATE = r"""
#include <mpi.h>
#include <stdio.h>
static char block[1 << 22];
static void be_late(int turn)
{
    static int lines;
    char line[8];
    while (lines < turn && fgets(line, sizeof line, stdin))
        lines++;
}
int main(int argc, char **argv)
{
    int rank;
    MPI_Request request;
    MPI_Comm twin;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        be_late(1);
        MPI_Send(block, 10, MPI_CHAR, 1, 0, twin); /* rank 1 has waited for this */
        MPI_Ssend(block, 1 << 22, MPI_CHAR, 1, 1, MPI_COMM_WORLD); /* this waits for rank 1 */
        be_late(3);
        MPI_Isend(block, 4, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        be_late(4);
    } else {
        MPI_Recv(block, 10, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, twin, MPI_STATUS_IGNORE);
        be_late(2);
        MPI_Recv(block, 1 << 22, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(block, 4, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); /* for the late send */
    }
    MPI_Barrier(twin); /* rank 1 is there first */
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
"""
# The waiting rank of each turn, and the call in which it waits.
TURNS = [(1, "MPI_Recv"), (0, "MPI_Ssend"), (1, "MPI_Waitall"), (1, "MPI_Barrier")]
LONG = 0.2


def run_late(source, folder):
    """Profile this program in which each wait is longer than `LONG` seconds; give what it has said."""
    (folder / "late.c").write_text(source)
    subprocess.run([BIN / "mpicc", "-g", folder / "late.c", "-o", folder / "late"], check=True)
    words = ["--profile=made", "--profile-events", "1000", "--stdin", "all", "-n", "2", folder / "late"]
    job = Job([BIN / "limosa", "run", *words], stdin=subprocess.PIPE, cwd=folder)
    try:
        for rank, call in TURNS:
            until_rank_waits_in(job.process.pid, rank, call)
            time.sleep(LONG)
            job.process.stdin.write("\n")
            job.process.stdin.flush()
        done = job.wait(60)
    finally:
        job.kill()
    assert done.code == 0, done.err
    return done.err


def test_who_waited_for_whom(tmp_path):
    said = run_late(LATE, tmp_path)
    found = waiting.find(files.read(tmp_path / "made"))
    assert (found.messages, found.unmatched) == (3, 0)
    # On a busy machine ranks wait elsewhere, too.
    long = {(wait.kind, wait.rank, wait.function, wait.awaited) for wait in found.waits if wait.seconds > 0.9 * LONG}
    assert long >= {
        (waiting.LATE_SENDER, 1, "MPI_Recv", 0),
        (waiting.LATE_RECEIVER, 0, "MPI_Ssend", 1),
        (waiting.LATE_SENDER, 1, "MPI_Irecv", 0),
        (waiting.IMBALANCE, 1, "MPI_Barrier", 0),
    }
    assert all(wait.seconds <= wait.of for wait in found.waits)
    assert "late receiver" in said


def test_clocks_of_two_hosts_are_brought_together(tmp_path):
    """The same recording with the second rank's clock an hour ahead, as on another host, says the same."""
    # A message back, so that there is a way each way.
    source = LATE.replace(
        "    if (rank == 0) {",
        "    for (int i = 0; i < 100; i++)\n"
        "        MPI_Sendrecv_replace(block, 1, MPI_CHAR, 1 - rank, 5, 1 - rank, 5, twin, MPI_STATUS_IGNORE);\n"
        "    if (rank == 0) {",
        1,
    )
    run_late(source, tmp_path)
    first, second = files.read(tmp_path / "made")
    ahead = replace(second, host="other", first_time=second.first_time + 3600)
    # The quickest of the messages tells the difference of the clocks.
    assert waiting.clock_offsets([first, ahead])["other"] == pytest.approx(-3600, abs=LONG / 4)
    waits = [wait for wait in waiting.find([first, ahead]).waits if wait.seconds > LONG / 2]
    assert {wait.kind for wait in waits} == {waiting.LATE_SENDER, waiting.LATE_RECEIVER, waiting.IMBALANCE}


def test_what_a_killed_rank_has_done_is_kept(program, tmp_path):
    done = run("--profile=made", "-n", "2", program, "kill", cwd=tmp_path)
    assert done.returncode == 137
    processes = files.read(tmp_path / "made")
    assert processes[1].functions["MPI_Recv"].calls == 110
    assert processes[1].wall is None
    assert "rank 1 did not call MPI_Finalize" in done.stderr.replace("rank 0 and ", "")


def test_threads_are_added_up(program, tmp_path):
    done = run(*recording(tmp_path / "made"), "-n", "1", program, "threads", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (process,) = files.read(tmp_path / "made")
    assert process.functions["MPI_Comm_size"].calls == 1 + 4 * 50
    assert process.threads == 5
    # Five threads that are in MPI nearly all of the time are there for five times as long as the job runs.
    busy = replace(process, wall=2.0, functions={"MPI_Recv": files.Called(1, 9.0, 0)})
    assert "90 % in MPI, counted over 5 threads of a rank" in summary.answer([busy])
    (row,) = summary.processes_table([busy]).rows
    assert "90.0 %" in row
    (row,) = summary.functions([busy]).rows
    assert row[3] == "90.0 %"


def test_more_communicators_than_there_is_room_for(program, tmp_path):
    """What is counted for an object is that object's; what is not, is in the sum of the function all the same."""
    done = run(*recording(tmp_path / "made"), "-n", "1", program, "objects", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (process,) = files.read(tmp_path / "made")
    assert process.functions["MPI_Barrier"].calls == 3000
    barriers = [one.calls for (name, _, _), one in process.objects.items() if name == "MPI_Barrier"]
    assert 0 < len(barriers) < 3000
    assert set(barriers) == {1}


def test_trace_has_every_call(program, tmp_path):
    done = run("--profile=made", "--profile-events", "100000", "-n", "2", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "made" / "trace.json").read_text())["traceEvents"]
    sends = [event for event in events if event["name"] == "MPI_Send"]
    assert len(sends) == 111
    assert sends[0]["args"]["bytes"] == 1000
    assert sends[0]["args"]["to rank"] == 1
    assert {event["args"]["name"].split(" on ")[0] for event in events if event["ph"] == "M"} == {"rank 0", "rank 1"}
    calls = sum(one.calls for process in files.read(tmp_path / "made") for one in process.functions.values())
    assert len([event for event in events if event["ph"] == "X"]) == calls
    for pid in (0, 1):
        begun = [event["ts"] for event in events if event["ph"] == "X" and event["pid"] == pid]
        assert begun == sorted(begun)


def test_calls_without_room_in_the_trace_are_counted(program, tmp_path):
    done = run("--profile=made", "--profile-events", "1024", "-n", "1", program, "threads", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "calls are missing in the trace" in done.stderr


def test_files_stay_small_however_many_calls_there_are(program, tmp_path):
    """The bytes on the disk, also of the part of the calls that is recorded one by one."""
    taken = {}
    for calls in (10_000, 1_000_000):
        made = tmp_path / str(calls)
        done = run(*recording(made, 5000), "-n", "1", program, "many", str(calls), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (process,) = files.read(made)
        assert process.functions["MPI_Iprobe"].calls == process.functions["MPI_Pack_size"].calls == calls / 2
        recorded = (file for ending in ("profile", "events", "names") for file in made.glob(f"*.{ending}"))
        taken[calls] = sum(file.stat().st_blocks * 512 for file in recorded)
    # A few pages more or less: the places of calls lie where their addresses put them.
    assert abs(taken[1_000_000] - taken[10_000]) < 64 * 1024
    assert taken[1_000_000] < 1_500_000


def test_a_program_without_mpi_has_no_profile(tmp_path):
    done = run("--profile=made", "-n", "1", "true", cwd=tmp_path)
    assert done.returncode == 0
    assert "there is no profile in" in done.stderr


def test_a_folder_with_files_is_refused(program, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").touch()
    done = run("--profile=made", "-n", "1", program, cwd=tmp_path)
    assert done.returncode == 2
    assert "made is not empty" in done.stderr


def test_a_folder_that_cannot_be_made_is_refused(program, tmp_path):
    done = run("--profile=/proc/none", "-n", "1", program, cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot make /proc/none" in done.stderr


def test_two_profiles_side_by_side(program, tmp_path, capsys):
    for name, count in (("two", 2), ("three", 3)):
        assert run(*recording(tmp_path / name), "-n", str(count), program, cwd=tmp_path).returncode == 0
    assert main(["profile", "diff", str(tmp_path / "two"), str(tmp_path / "three")]) == 0
    said = capsys.readouterr().out
    (row,) = [line.split() for line in said.splitlines() if line.startswith("MPI_Allreduce ")]
    assert row[1:3] == ["14", "21"]
    first, second = (files.read(tmp_path / name) for name in ("two", "three"))
    functions, places = summary.compare(first, second, ("two", "three"))
    (row,) = [row for row in functions.rows if row[0] == "MPI_Allreduce"]
    assert functions.columns[1:5] == ["calls, two", "calls, three", "mean, two", "mean, three"]
    # A function that is called half as often, and takes half of the time, has not become faster.
    half = {"MPI_Allreduce": files.Called(100, 1.0, 0)}, {"MPI_Allreduce": files.Called(50, 0.5, 0)}
    one, other = ([replace(first[0], functions=found, sites={})] for found in half)
    (row,) = summary.compare(one, other, ("one", "other"))[0].rows
    assert row[3:5] == ["10 ms", "10 ms"]
    assert row[-1] == "1"
    (row,) = [row for row in places.rows if row[1] == "MPI_Allreduce"]
    assert row[2:4] == ["14", "21"]


LIMITED = r"""
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
    struct rlimit all, few;
    int is_done;
    getrlimit(RLIMIT_FSIZE, &all);
    few = all;
    few.rlim_cur = (rlim_t)atol(argv[1]);
    setrlimit(RLIMIT_FSIZE, &few); /* the first call makes the profile */
    MPI_Initialized(&is_done);
    setrlimit(RLIMIT_FSIZE, &all);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""


def test_a_limit_of_file_sizes_does_not_end_the_program(tmp_path):
    (tmp_path / "limited.c").write_text(LIMITED)
    subprocess.run([BIN / "mpicc", tmp_path / "limited.c", "-o", tmp_path / "limited"], check=True)
    # Two megabytes hold the profile of a thread; there is no room of the length that all possible threads would need.
    done = run("--profile=made", "-n", "1", tmp_path / "limited", str(2 << 20), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no room in" not in done.stderr
    (process,) = files.read(tmp_path / "made")
    assert process.functions["MPI_Initialized"].calls == 1
    assert process.refused == 0
    (file,) = (tmp_path / "made").glob("*.profile")
    assert file.stat().st_size < 2 << 20
    # Here there is room for the beginning of the file, and none for the calls.
    for limit in (100, 64 << 10):
        done = run(f"--profile=made{limit}", "-n", "1", tmp_path / "limited", str(limit), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "no room in" in done.stderr
        assert "File too large" in done.stderr


def test_one_damaged_or_empty_file_is_left_out(program, tmp_path, capsys):
    assert run(*recording(tmp_path / "made"), "-n", "3", program, cwd=tmp_path).returncode == 0
    whole = {process.rank: process for process in files.read(tmp_path / "made")}
    file = tmp_path / "made" / f"{whole[2].host}.{whole[2].pid}.profile"
    content = file.read_bytes()
    # Behind the header and the names of the functions, of 40 bytes each, are the calls.
    begin = 4096 + -(-int.from_bytes(content[12:16], "little") * 40 // 4096) * 4096
    without_calls = content[:begin] + bytes(len(content) - begin)
    for damaged in (b"", content[:1000], content[:begin], content[: len(content) // 2], without_calls):
        file.write_bytes(damaged)
        processes = files.read(tmp_path / "made")
        assert [process.rank for process in processes] == [0, 1]
        (said,) = processes.left_out
        assert str(file) in said
        assert said.endswith("it is left out")
        assert said in summary.troubles(processes)
    assert "There is no profile of rank 2." in summary.troubles(processes)
    assert main(["profile", str(tmp_path / "made")]) == 0
    assert "2 ranks ran for" in capsys.readouterr().out
    assert "it is left out" in (tmp_path / "made" / "report.html").read_text()


def test_a_page_that_cannot_be_written_is_a_sentence(program, tmp_path, capsys):
    assert run("--profile=made", "--profile-events", "1000", "-n", "1", program, cwd=tmp_path).returncode == 0
    page = tmp_path / "made" / "report.html"
    before = page.read_text()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limits[1]))
    try:
        assert main(["profile", str(tmp_path / "made")]) == 3
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"limosa profile: cannot write {page}: File too large" in capsys.readouterr().err
    assert page.read_text() == before
    assert not list((tmp_path / "made").glob(".unfinished*"))


@pytest.mark.parametrize("words", [["bench"], ["profile"], ["report"], ["study", "octave"]])
def test_help_needs_nothing_but_python(words, tmp_path):
    installed = Path(limosa.__file__).parents[1]
    for name in ("limosa", "limosa_lab", "_limosa_mpi4py.py"):
        (tmp_path / name).symlink_to(installed / name)
    command = [sys.executable, "-S", "-m", "limosa_lab", *words]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*command, "--help"], env=env, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: limosa {' '.join(words)}")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 3
    assert "needs the extra `lab`: numpy" in done.stderr


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("main", "main"),
        ("solver::step<std::vector<double, std::allocator<double> > >(std::vector<double>, int) const", "solver::step"),
        ("void exchange<int>(int*, unsigned long)", "exchange"),
        ("(anonymous namespace)::relax(int)", "(anonymous namespace)::relax"),
        ("<wave::Field as wave::Step>::advance", "wave::Field::advance"),
        ("core::ops::call_once::h0123456789abcdef", "core::ops::call_once"),
        ("Grid::operator()(int)", "Grid::operator()(int)"),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_functions_have_names_for_people(name, shown):
    assert names.readable(name) == shown


def test_damaged_profiles_are_an_error(program, tmp_path):
    assert run(*recording(tmp_path / "made"), "-n", "1", program, cwd=tmp_path).returncode == 0
    (file,) = (tmp_path / "made").glob("*.profile")
    whole = file.read_bytes()
    for damaged in (b"", whole[:50], b"X" + whole[1:], whole[:100_000]):
        file.write_bytes(damaged)
        with pytest.raises(LabError, match="is damaged, incomplete or not a profile"):
            files.read(tmp_path / "made")
    file.write_bytes(whole[:8] + b"\x63" + whole[9:])
    with pytest.raises(LabError, match="has version 99"):
        files.read(tmp_path / "made")


def test_a_full_disk_stops_the_profile_and_not_the_program(program, tmp_path):
    if os.geteuid():
        pytest.skip("a small file system can be mounted by root only")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", disk], check=True)
    try:
        done = run(f"--profile={disk}/made", "-n", "2", program, cwd=tmp_path)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 0, done.stderr
    assert "no room in" in done.stderr


def test_a_full_disk_ends_the_trace_and_not_the_program(program, tmp_path):
    if os.geteuid():
        pytest.skip("a small file system can be mounted by root only")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
    try:
        words = (f"--profile={disk}/made", "--profile-events", "1000000", "-n", "1", program, "many", "100000")
        done = run(*words, cwd=tmp_path)
        (process,) = files.read(disk / "made")
    finally:
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 0, done.stderr
    assert process.functions["MPI_Iprobe"].calls == 50_000
    assert done.stderr.count("the profile will not be complete") == 1
