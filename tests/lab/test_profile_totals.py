"""A profile's times are those that a program measures itself, around each of its calls."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from jobs import PATIENCE
from limosa_lab.profile import files

BIN = Path(sysconfig.get_path("scripts"))
KERNELS = Path(__file__).parents[2] / "kernels"
TIMED = ("Allreduce", "Barrier", "Irecv", "Isend", "Reduce", "Sendrecv", "Waitall")

# Included before the program: its calls are timed, and the sum is printed at the end.
HEADER = """
#include <mpi.h>
#include <stdio.h>
#include <time.h>
static double own_seconds;
static inline double own_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#define OWN_TIMER(call) \\
    ({ \\
        const double own_begin = own_clock(); \\
        const int own_code = call; \\
        own_seconds += own_clock() - own_begin; \\
        own_code; \\
    })
#define MPI_Finalize() (fprintf(stderr, "own timer: %.9f\\n", own_seconds), (MPI_Finalize)())
""" + "".join(f"#define MPI_{name}(...) OWN_TIMER((MPI_{name})(__VA_ARGS__))\n" for name in TIMED)


@pytest.mark.quiet
@pytest.mark.parametrize(
    "program", [["wave3d", "--n", "65"], ["wave3d", "--n", "65", "--overlap"], ["cg", "--n", "513"]]
)
def test_totals_are_those_of_the_programs_own_timers(program, tmp_path):
    name, *options = program
    (tmp_path / "timed.h").write_text(HEADER)
    source = KERNELS / name / f"{name}.c"
    flags = ["-O2", "-std=gnu11", "-include", tmp_path / "timed.h"]
    subprocess.run([BIN / "mpicc", *flags, source, "-o", tmp_path / name, "-lm"], check=True)
    # The program's timers also measure the profiler's work around a call and their own, with cold caches up to 1 us. A
    # process that loses its processor between both clocks adds to the difference, and never takes away from it: the
    # nearest of a few runs counts.
    seen = []
    for number in range(5):
        own, recorded, calls = totals(tmp_path / name, options, tmp_path / f"made{number}")
        seen.append(f"own {own:.6f} s, profile {recorded:.6f} s, {calls} calls, {100 * (recorded / own - 1):+.2f} %")
        print(f"{name}: {seen[-1]}")
        if -0.02 * own - 1e-6 * calls <= recorded - own <= 0.001 * own:
            return
    pytest.fail(f"{program}: totals differ: {'; '.join(seen)}")


def totals(program, options, profile):
    """Seconds in calls by the program's own timers and by the profile, and the number of calls."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    command = [BIN / "limosa", "run", f"--profile={profile}", "-n", "4", program, *options]
    done = subprocess.run(command, cwd=profile.parent, env=env, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stderr
    own = sum(map(float, re.findall(r"own timer: ([\d.]+)", done.stderr)))
    timed = [f"MPI_{name}" for name in TIMED]
    functions = [
        process.functions[name] for process in files.read(profile) for name in timed if name in process.functions
    ]
    return own, sum(one.seconds for one in functions), sum(one.calls for one in functions)
