"""Faults of whole jobs: killed ranks and launchers, missing memory, refused system calls, forks, closed outputs.

Each test looks at what a user would see: exit code, message, and that nothing is left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jobs import patient, until

SHM = Path("/dev/shm")
pytestmark = pytest.mark.usefixtures("limosa")
# Jobs of other tests have files in /dev/shm, too.
looks_at_the_machine = pytest.mark.quiet


def is_alive(pid: int) -> bool:
    """True for a process that is there and not merely unburied."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def survivors(pids) -> list[int]:
    """The processes that are still alive when there was time to end them."""
    end = time.monotonic() + patient(30)
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return [pid for pid in pids if is_alive(pid)]


def pids_of(job, n: int) -> dict[int, int]:
    """Reads `pid RANK PID` lines."""
    pairs = [line.split()[1:] for line in job.read_lines(n)]
    return {int(rank): int(pid) for rank, pid in pairs}


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """No file in /dev/shm or the temporary directory outlives the test's jobs.

    Other programs of the machine use /dev/shm, too: only names with ours count.
    """

    def ours() -> set[Path]:
        return set(SHM.glob("*limosa*"))

    before = ours()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert ours() <= before
    assert list(tmp_path.iterdir()) == []


@looks_at_the_machine
@pytest.mark.parametrize("scene", ["work", "wait"])
@pytest.mark.parametrize("victim", [0, 1, 3])
def test_a_killed_rank_ends_the_job(job, program, nothing_left, scene, victim):
    running = job([program("scene"), scene], n=4, options=["--on-hang=off"])
    pids = pids_of(running, 4)
    os.kill(pids[victim], signal.SIGKILL)
    outcome = running.wait(2)
    assert outcome.code == 128 + signal.SIGKILL
    assert f"rank {victim}" in outcome.err
    assert "SIGKILL" in outcome.err
    assert survivors(pids.values()) == []


@looks_at_the_machine
def test_all_ranks_killed_at_once_end_the_job(job, program, nothing_left):
    running = job([program("scene"), "work"], n=4)
    pids = pids_of(running, 4)
    for pid in pids.values():
        # The launcher may have ended the others already.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert running.wait(2).code == 128 + signal.SIGKILL


@looks_at_the_machine
@pytest.mark.parametrize("scene", ["work", "wait"])
def test_a_killed_launcher_leaves_no_orphan(job, program, nothing_left, scene):
    running = job([program("scene"), scene], n=4)
    pids = pids_of(running, 4)
    os.kill(running.process.pid, signal.SIGKILL)
    assert survivors(pids.values()) == []


@looks_at_the_machine
@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_child_of_a_rank_outlives_the_launcher(job, program, nothing_left, signalled):
    running = job([program("scene"), "children"], n=2)
    pids = pids_of(running, 4)
    os.kill(running.process.pid, signalled)
    assert survivors(pids.values()) == []


@looks_at_the_machine
@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("pidfd_open", errno.EPERM),
        ("pidfd_open", errno.ENOSYS),
        ("close_range", errno.ENOSYS),
        ("prctl", errno.EPERM),
        ("setsid", errno.EPERM),
        ("membarrier", errno.EPERM),
        ("process_vm_readv", errno.EPERM),
        ("waitid", errno.EPERM),
        ("waitid", errno.ENOSYS),
    ],
)
def test_jobs_start_and_leave_nothing_where_a_system_call_is_refused(job, program, nothing_left, call, error):
    wrapper = [program("deny"), call, str(error)]
    running = job([program("scene"), "children"], n=2, wrapper=wrapper)
    if running.process.poll() == 77:
        pytest.skip("no system call filters here")
    pids = pids_of(running, 4)
    below = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
    os.kill(running.process.pid, signal.SIGKILL)
    assert survivors([*pids.values(), *map(int, below)]) == []
    if call in ("pidfd_open", "waitid"):
        outcome = job([program("scene"), "leave", "7"], n=2, wrapper=wrapper).wait(10)
        assert outcome.code == 7, outcome.text


def test_the_doctor_names_a_system_call_that_is_refused(program, limosa):
    words = [program("deny"), "pidfd_open", str(errno.ENOSYS), limosa, "doctor"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=100)
    if found.returncode == 77:
        pytest.skip("no system call filters here")
    assert re.search(r"^warn pidfd_open: refused", found.stdout, re.MULTILINE), found.stdout


#: A libfabric without providers, of a version that no machine has. Its structures contain pointers to zeros.
NEWER_LIBRARY = """
static void *zeros[512], *words[64];
unsigned fi_version(void) { return 9 << 16 | VERSION; }
int fi_getinfo(unsigned v, char *n, char *s, unsigned long f, void *h, void **list) { *list = 0; return 0; }
void *fi_dupinfo(void *info) { for (int i = 0; i < 64; i++) words[i] = zeros; return words; }
void fi_freeinfo(void *info) {}
int fi_fabric(void *a, void **b, void *c) { return -1; }
const char *fi_strerror(int error) { return "no words"; }
"""


@pytest.mark.skipif(
    any(path.is_dir() and any(path.iterdir()) for path in map(Path, ("/sys/class/infiniband", "/sys/class/cxi"))),
    reason="on a machine with a fast network the system's libfabric is used",
)
def test_the_doctor_shows_the_newest_libfabric(tmp_path, limosa):
    newest = tmp_path / "lib/mpich/libfabric.so.1"
    for package, version in ((tmp_path / "lib/openmpi/libfabric.so.1", 1), (newest, 2)):
        package.parent.mkdir(parents=True)
        flags = ["-shared", "-fPIC", f"-DVERSION={version}", "-Wl,-soname,libfabric.so.1", "-o", package]
        subprocess.run(["cc", "-x", "c", *flags, "-"], input=NEWER_LIBRARY, text=True, check=True)
    (tmp_path / "bin").mkdir()
    shutil.copy(limosa, tmp_path / "bin/limosa")
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    env.pop("LIMOSA_FABRIC_LIBRARY", None)
    found = subprocess.run(["limosa", "doctor"], capture_output=True, text=True, timeout=100, env=env)
    line = re.search(r"libfabric: (\S+), version (\S+),", found.stdout)
    assert line and (Path(line[1]).resolve(), line[2]) == (newest, "9.2"), found.stdout


@looks_at_the_machine
def test_no_child_of_a_rank_outlives_a_killed_rank(job, program, nothing_left):
    running = job([program("scene"), "children"], n=2)
    pids = pids_of(running, 4)
    os.kill(pids[1], signal.SIGKILL)
    running.wait(2)
    assert survivors(pids.values()) == []


def test_a_rank_that_exits_without_finalize_ends_the_job(job, program):
    outcome = job([program("scene"), "leave"], n=3).wait(4)
    assert outcome.code != 0
    assert "rank 1" in outcome.err
    assert "MPI_Finalize" in outcome.err


def test_the_exit_code_of_a_failing_rank_is_passed_on(job, program):
    outcome = job([program("scene"), "leave", "7"], n=3).wait(4)
    assert outcome.code == 7
    assert "rank 1" in outcome.err


def test_a_crash_is_named(job, program):
    outcome = job([program("scene"), "crash"], n=3).wait(10)
    assert outcome.code == 128 + signal.SIGSEGV
    assert "rank 1" in outcome.err
    assert "SIGSEGV" in outcome.err


@pytest.mark.parametrize("size", [100, 100_000, 16_000_000])
def test_a_small_dev_shm_does_not_matter(job, program, size):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces for this user")
    script = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
    outcome = job([program("scene"), "ring", str(size)], n=4, wrapper=["unshare", "-m", "sh", "-c", script, "sh"]).wait(
        30
    )
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 4


def test_no_dev_shm_at_all_does_not_matter(job, program):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces for this user")
    script = 'mount -t tmpfs -o ro,size=4k tmpfs /dev/shm && exec "$@"'
    outcome = job([program("scene"), "ring"], n=3, wrapper=["unshare", "-m", "sh", "-c", script, "sh"]).wait(30)
    assert outcome.code == 0, outcome.text


@pytest.mark.parametrize("kilobytes", [8_000, 20_000, 60_000, 150_000, 400_000])
def test_a_limit_of_address_space_gives_success_or_a_clear_error(job, program, kilobytes):
    # With less than 5,000 the kernel cannot load the launcher, and ends it.
    script = f'ulimit -v {kilobytes}; exec "$@"'
    outcome = job([program("scene"), "ring", "30000000"], n=3, wrapper=["sh", "-c", script, "sh"]).wait(20)
    if outcome.code == 0:
        assert outcome.out.count("done") == 3
    else:
        assert outcome.err.strip() != ""
        assert not re.search(r"SIGSEGV|SIGBUS|panicked|core dumped", outcome.err), outcome.err


@pytest.fixture
def cgroup():
    """A control group for memory; the function puts a command into it with a limit."""
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = root / f"limosa-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            break
        group.rmdir()
    else:
        pytest.skip("no control group can be made here")

    def limited(size: int) -> list[str]:
        (group / limit).write_text(str(size))
        return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]

    yield limited

    def is_removed() -> bool:
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    until(is_removed, "processes of the job are left in the control group")


def test_a_rank_killed_for_memory_ends_the_job_with_a_hint(job, program, cgroup):
    outcome = job([program("scene"), "devour"], n=3, wrapper=cgroup(200_000_000)).wait(30)
    assert outcome.code != 0
    assert "memory" in outcome.err.lower(), outcome.err


def test_a_tiny_memory_limit_is_an_error_at_start_or_later_but_no_hang(job, program, cgroup):
    outcome = job([program("scene"), "ring", "30000000"], n=3, wrapper=cgroup(20_000_000)).wait(30)
    assert outcome.code != 0
    assert not re.search(r"SIGBUS|panicked", outcome.err), outcome.err


@looks_at_the_machine
@pytest.mark.parametrize("cma", ["0", "1"])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_killed_during_a_large_transfer_ends_the_job(job, program, nothing_left, victim, cma):
    outcome = job([program("scene"), "transfer", str(victim)], n=2, env={"LIMOSA_CMA": cma}).wait(10)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert f"rank {victim} " in outcome.err


def test_no_memory_for_connections_is_an_error(job, program):
    outcome = job([program("scene"), "lanes"], n=4).wait(10)
    assert outcome.code != 0
    assert "MPI_ERR_NO_MEM" in outcome.err, outcome.err
    assert "MPI_Allreduce" in outcome.err
    outcome = job([program("scene"), "lanes", "return"], n=4).wait(10)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count(": out of memory") == 4, outcome.out


def test_no_memory_for_early_messages_is_an_error(job, program):
    outcome = job([program("scene"), "flood"], n=2).wait(20)
    assert outcome.code != 0
    for part in ("rank 1", "MPI_ERR_NO_MEM", "8000 bytes", "receive them sooner"):
        assert part in outcome.err, outcome.err
    outcome = job([program("scene"), "flood", "return"], n=2).wait(20)
    assert outcome.code == 8, outcome.text
    assert outcome.out.count("rank 1: out of memory") == 3, outcome.out


@pytest.mark.parametrize(("variable", "most"), [(None, 300), ("10000000", 20)])
def test_a_flood_to_a_rank_that_computes_stops_at_the_limit(job, program, variable, most):
    env = {} if variable is None else {"LIMOSA_UNEXPECTED_BYTES": variable}
    outcome = job([program("scene"), "flood-of-a-computer"], n=2, env=env).wait(30)
    assert outcome.code == 0, outcome.text
    held = re.search(r"rank 1 holds (\d+) MB", outcome.out)
    assert held and int(held[1]) <= most, outcome.out


#: Messages between imitated hosts: by files, and by libfabric.
FAR = ["file", "fabric"]


def far(device: str, folder: Path) -> dict[str, str]:
    """The variables of a job whose ranks are on hosts of their own."""
    if device == "fabric":
        try:
            ctypes.CDLL(os.environ.get("LIMOSA_FABRIC_LIBRARY", "libfabric.so.1"))
        except OSError:
            pytest.skip("libfabric is not installed: sudo apt-get install libfabric1")
    return {"LIMOSA_DEVICE": f"file:{folder}" if device == "file" else device, "LIMOSA_HOSTS": "2"}


@pytest.mark.parametrize("device", FAR)
def test_a_flood_to_a_rank_that_waits_stops_at_the_credit(job, program, tmp_path, device):
    # A window and a quarter (20 MB), 0.4 KB for each of the 12288 other messages, and buffers.
    outcome = job([program("flood"), "96"], env=far(device, tmp_path)).wait(60)
    assert (outcome.code, outcome.err) == (0, ""), outcome.text
    assert int(outcome.out) < (20 << 10) + 0.4 * 12288 + (8 << 10)


@pytest.mark.parametrize("device", FAR)
def test_two_ranks_that_flood_each_other_meet_in_a_barrier(job, program, tmp_path, device):
    outcome = job([program("flood"), "48", "pair"], env=far(device, tmp_path)).wait(60)
    assert (outcome.code, outcome.text) == (0, "all received\n")


@pytest.mark.parametrize("scene", ["ring", "denied-ring", "half-denied-ring", "undumpable-ring", "no-barrier-ring"])
@pytest.mark.parametrize("variable", [None, "0", "1"])
def test_messages_arrive_without_help_of_the_kernel(job, program, scene, variable):
    env = {} if variable is None else {"LIMOSA_CMA": variable}
    for size in (1000, 100_000, 5_000_000):
        outcome = job([program("scene"), scene, str(size)], n=3, env=env).wait(20)
        if outcome.code == 77:
            pytest.skip("no system call filters here")
        assert outcome.code == 0, outcome.text
        assert outcome.out.count("done") == 3


def test_a_forked_child_computes_and_exits(job, program):
    outcome = job([program("scene"), "fork"], n=3).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 3


@pytest.mark.parametrize("wait", ["auto", "block"])
def test_ranks_of_which_one_has_no_barriers_wake_each_other(job, program, wait):
    scene = str(program("scene"))
    others = [part for name in ("no-barrier-ring", "ring") for part in (":", "-n", "1", scene, name, "100000")]
    outcome = job([scene, "ring", "100000", *others], n=1, env={"LIMOSA_WAIT": wait}).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 3


def test_a_forked_child_that_calls_mpi_gets_an_error(job, program):
    outcome = job([program("scene"), "fork-mpi"], n=2).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 2
    assert "fork" in outcome.err.lower() or "child" in outcome.err.lower(), outcome.err


def test_a_reader_that_goes_away_ends_the_job(job, program):
    running = job([program("scene"), "talk"], n=2)
    assert "very many lines" in running.read_lines(1)[0]
    running.process.stdout.close()
    # The pipe of the errors stays open, so only the process is waited for.
    assert running.process.wait(patient(5)) is not None
    assert "panicked" not in running.process.stderr.read()


def test_closed_standard_files_do_no_harm(job, program):
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        outcome = job(
            [program("scene"), "ring", "100000"], n=3, wrapper=["sh", "-c", f'exec "$@" {closing}', "sh"]
        ).wait(20)
        assert outcome.code == 0, (closing, outcome.text)


def test_a_program_starts_without_the_launcher(program):
    done = subprocess.run([program("scene"), "ring"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "rank 0 done" in done.stdout


def test_a_rank_may_start_an_mpi_program_of_its_own(job, program):
    script = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    outcome = job([sys.executable, "-c", script, program("scene"), "ring"], n=2).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 2


@looks_at_the_machine
def test_many_jobs_at_the_same_time(job, program, nothing_left):
    jobs = [job([program("scene"), "ring", "100000"], n=3) for _ in range(6)]
    for each in jobs:
        outcome = each.wait(30)
        assert outcome.code == 0, outcome.text


@pytest.mark.parametrize(("options", "env"), [(["-usize", "7"], {}), ([], {"MPIEXEC_UNIVERSE_SIZE": "7"})])
def test_the_size_of_the_universe_is_said_as_for_mpich(job, python, options, env):
    text = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE))"
    outcome = job([python, "-c", text], n=1, options=options, env=env).wait(20)
    assert (outcome.code, outcome.out) == (0, "7\n"), outcome.text
