"""What surrounds a program: the user it runs as, how it finds the library, limits, and services that it starts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from jobs import until

pytestmark = pytest.mark.usefixtures("limosa")

#: Two ranks that exchange short and long messages and print their numbers.
EXCHANGE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    int rank, count = 1 << 20;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *own = malloc(count * sizeof(double)), *other = malloc(count * sizeof(double));
    for (int i = 0; i < count; i++) own[i] = rank + 1;
    MPI_Sendrecv(own, count, MPI_DOUBLE, 1 - rank, 1, other, count, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    int wrong = other[count - 1] != 2 - rank;
    MPI_Allreduce(own, other, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    wrong += other[0] != 3 || other[count - 1] != 3;
    printf("user %d wrong %d\\n", (int)geteuid(), wrong);
    MPI_Finalize();
    return 0;
}
"""

#: A rank that fills its stack.
RECURSION = """
#include <mpi.h>
#include <stddef.h>

static int deep(volatile char *above, int n) {
    volatile char local[4096];
    local[0] = (char)n;
    return deep(local, n + 1) + local[0] + above[0];
}

int main(void) {
    char first = 0;
    MPI_Init(NULL, NULL);
    int n = deep(&first, 0);
    MPI_Finalize();
    return n;
}
"""


@pytest.fixture
def folder(prefix):
    """A folder that other users may enter, with a copy of the library."""
    made = Path(tempfile.mkdtemp(prefix="limosa-test-"))
    made.chmod(0o755)
    shutil.copy(prefix / "lib" / "libmpi_abi.so.1", made)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def compiled(folder, prefix):
    """Compiles programs that say nothing of where the library is."""
    return lambda source: compile_program(folder, prefix, source)


def compile_program(folder: Path, prefix: Path, source: str) -> Path:
    (folder / "program.c").write_text(source)
    program = folder / "program"
    library = ["-I", prefix / "include", "-L", prefix / "lib", "-l:libmpi_abi.so.1"]
    subprocess.run(["cc", "-O0", folder / "program.c", *library, "-o", program], check=True)
    return program


def without_library_path() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}


def test_a_program_that_does_not_say_where_the_library_is_starts(compiled, limosa):
    program = compiled(EXCHANGE)
    alone = subprocess.run([program], env=without_library_path(), capture_output=True, text=True)
    assert "libmpi_abi.so.1" in alone.stderr and alone.returncode == 127
    done = subprocess.run(
        [limosa, "run", "-n", "2", program], env=without_library_path(), capture_output=True, text=True, timeout=300
    )
    assert (done.stdout.count("wrong 0"), done.stderr, done.returncode) == (2, "", 0)


def as_user(number: int) -> list[str]:
    return ["setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups", "--bounding-set=-all"]


def run_as_users(compiled, folder: Path, limosa: str, *ranks: list[str]) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("only root may run programs as other users")
    program = compiled(EXCHANGE)
    words: list[str] = []
    for rank in ranks:
        words += [":"] * bool(words) + ["-n", "1", *rank, str(program)]
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    return subprocess.run([limosa, "run", *words], env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("users", [(0, 65534), (65534, 0), (65534, 1000)])
def test_ranks_of_different_users_work_together(compiled, folder, limosa, users):
    done = run_as_users(compiled, folder, limosa, *(as_user(user) if user else [] for user in users))
    assert (sorted(done.stdout.splitlines()), done.stderr) == (sorted(f"user {user} wrong 0" for user in users), "")


def test_a_rank_of_another_user_without_the_jobs_memory_is_refused_in_clear_words(compiled, folder, limosa):
    closing = ["sh", "-c", 'exec 3>&- 4>&- 5>&- 6>&-; exec "$0"']
    done = run_as_users(compiled, folder, limosa, [], [*as_user(65534), *closing])
    assert done.returncode != 0
    assert "this process runs as user 65534 and the launcher as user 0" in done.stderr
    assert "run the whole job as one user" in done.stderr


def test_a_full_stack_is_suspected_where_a_program_crashes(compiled, limosa):
    program = compiled(RECURSION)
    done = subprocess.run([limosa, "run", "-n", "2", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 128 + signal.SIGSEGV
    assert re.search(r"hint: .*a stack that is full.*: its limit is [0-9.]+ .iB \(`ulimit -s`\)", done.stderr)


def test_a_file_that_becomes_too_large_is_named_as_the_reason(folder, limosa):
    # 20 MB are enough for the job's memory, which counts as a file.
    script = f"ulimit -f 20000; exec {limosa} run -n 2 head -c 30000000 /dev/zero > {folder}/out"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.count("file too large")) == (3, 1), done.stderr
    script = f"ulimit -f 20000; exec {limosa} run sh -c 'head -c 30000000 /dev/zero > {folder}/out; kill -XFSZ $$'"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 128 + signal.SIGXFSZ
    assert "hint: a file reached the limit of file sizes, 19.5 MiB (`ulimit -f`)" in done.stderr


def test_output_that_is_lost_at_the_very_end_of_a_job_is_an_error(folder, limosa):
    # Without line breaks a rank's output is written when its stream ends, which is a moment before the process does.
    script = f"ulimit -f 20000; exec {limosa} run -n 3 head -c 9000000 /dev/zero > {folder}/out"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    text = r"limosa: cannot write the output of the job: file too large(; ending the job)?\n"
    assert done.returncode == 3
    assert re.fullmatch(text, done.stderr), done.stderr


@pytest.mark.parametrize("options", [[], ["--profile=made"]])
def test_jobs_run_below_a_limit_of_file_sizes(program, folder, limosa, options):
    words = shlex.join([limosa, "run", "-n", "4", *options, str(program("scene")), "ring"])
    script = f"ulimit -f 50000; exec {words}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no room" not in done.stderr


def test_a_limit_of_file_sizes_that_is_too_low_is_named(program, limosa):
    script = f"ulimit -f 2000; exec {shlex.join([limosa, 'run', '-n', '2', str(program('scene')), 'ring'])}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "the limit of file sizes (`ulimit -f`) is 2048000 bytes" in done.stderr


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(("starts", "lives"), [("setsid", False), ("env -u LIMOSA_JOB_ID setsid", True)])
def test_only_a_service_that_has_left_the_job_outlives_it(folder, limosa, starts, lives):
    start = f"{starts} sh -c 'setsid sleep 600 & echo $! > {folder}/pid' >/dev/null 2>&1"
    # The service is one when its program has begun.
    script = f"{start}; until grep -q sleep /proc/$(cat {folder}/pid)/comm; do sleep 0.05; done"
    done = subprocess.run([limosa, "run", "sh", "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    pid = int((folder / "pid").read_text())
    if lives:
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)
    else:
        until(lambda: not is_alive(pid), "the service outlives the job")


#: A program that closes all descriptors that it has not opened, as services do, and opens files under their numbers.
CLOSES = """
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, files[60];

static void exchange(void) {
    static double own[1 << 16], other[1 << 16];
    MPI_Sendrecv(own, 1 << 16, MPI_DOUBLE, 1 - rank, 1, other, 1 << 16, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange();
    usleep(200 * 1000);
    for (int fd = 3; fd < 60; fd++) close(fd);
    for (int fd = 3; fd < 60 && argc > 1; fd++) {
        char name[] = "/tmp/limosa-test-XXXXXX";
        files[fd] = mkstemp(name);
        unlink(name);
        /* Its number is another one if a thread of the library has just opened a file. */
        if (files[fd] < 0) return 1;
    }
    exchange();
    /* Long enough for every thread that looks now and then. */
    if (rank == 0) sleep(2);
    exchange();
    MPI_Finalize();
    for (int fd = 3; fd < 60 && argc > 1; fd++) {
        struct stat stat;
        if (fstat(files[fd], &stat) != 0 || stat.st_size != 0 || lseek(files[fd], 0, SEEK_CUR) != 0) {
            printf("descriptor %d was closed, written or read\\n", files[fd]);
            return 1;
        }
    }
    puts("in order");
    return 0;
}
"""


@pytest.mark.parametrize("reuses", [[], ["reuse"]])
@pytest.mark.parametrize("variables", [{}, {"LIMOSA_HOSTS": "2"}])
def test_a_program_may_close_all_descriptors_and_use_their_numbers(compiled, folder, limosa, reuses, variables):
    program = compiled(CLOSES)
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **variables}
    done = subprocess.run(
        [limosa, "run", "-n", "2", program, *reuses], env=env, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr, done.returncode) == ("in order\n" * 2, "", 0)


@pytest.fixture
def foreign(folder) -> Path:
    """A program of another MPI library, which is empty here: it sleeps until it is ended."""
    (folder / "mpi.c").write_text("int MPI_Init(int *c, char ***v) { return c == 0 && v == 0; }\n")
    (folder / "other.c").write_text(
        "#include <unistd.h>\nint MPI_Init(int *, char ***);\n"
        "int main(void) { MPI_Init(0, 0); for (;;) sleep(1); return 0; }\n"
    )
    library, program = folder / "libmpi.so.80", folder / "other"
    for words in (
        ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.80", "mpi.c", "-o", library],
        ["other.c", library, "-Wl,-rpath,$ORIGIN", "-o", program],
    ):
        subprocess.run(["cc", *words], check=True, cwd=folder)
    return program


@pytest.mark.parametrize("wrapper", [[], ["sh", "-c", '"$0"; true']])
def test_another_mpi_library_is_named_while_the_program_runs(job, foreign, wrapper):
    running = job([*wrapper, foreign], n=2)
    said = running.process.stderr.readline() + running.process.stderr.readline()
    assert running.process.poll() is None
    for part in ("none of the 2 ranks has joined", "another MPI library", "libmpi.so.80", "--mpi openmpi"):
        assert part in said, said
    running.process.send_signal(signal.SIGTERM)
    assert running.wait(30).err.count("another MPI library") == 0


@pytest.mark.parametrize("n", [1, 2])
def test_another_mpi_library_that_is_not_found_is_named(job, foreign, n):
    (foreign.parent / "libmpi.so.80").unlink()
    outcome = job([foreign], n=n).wait(30)
    assert outcome.code == 127
    assert "was made for another MPI library, libmpi.so.80, which is not found" in outcome.err, outcome.err
    assert "--mpi openmpi" in outcome.err


def test_the_limit_of_processes_is_named_when_it_stops_a_start(folder, limosa):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    codes = []
    for most in (1, 3, 1000):
        # A user without other processes; root has no such limit.
        words = ["setpriv", "--reuid=61234", "--clear-groups", "--inh-caps=-all", "prlimit", f"--nproc={most}"]
        command = [*words, limosa, "run", "-n", "2", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
        codes.append(done.returncode)
        assert (f"limited to {most} (`ulimit -u`)" in done.stderr) == (done.returncode != 0), done
    assert codes[0] == 3 and codes[-1] == 0, codes
