"""MPITB's interface on another library and in MATLAB's form, its utilities and its programs."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import BUILT, OPTIONS, ROOT
from jobs import run_job
from limosa import _octave
from limosa_lab.runner import variables
from mpitb_programs import END, START

EXAMPLES = ROOT / "octave" / "examples" / "mpitb"

# --- another library --------------------------------------------------------------------------------------------------


#: What is the same with every library.
PORTABLE = """
other = 1 - rank;
x = [0 0 0];
[info, r] = MPI_Irecv (x, other, 1, C);
[info, s] = MPI_Isend ([rank, 2, 3], other, 1, C);
[info, stats] = MPI_Waitall (r, s);
same (x, [other, 2, 3]);
same (stats(1).cnt, 24);
total = 0;
MPI_Allreduce (rank + 1, total, MPI_SUM, C);
same (total, 3);
[info, op] = MPI_Op_create (@max, 1);
MPI_Allreduce (rank, total, op, C);
same (total, 1);
MPI_Op_free (op);
[info, dup] = MPI_Comm_dup (C);
all = zeros (1, 2);
[info, r] = MPI_Iallgather (rank, all, dup);
MPI_Wait (r);
same (all, [0 1]);
MPI_Comm_free (dup);
same (dup, MPI_COMM_NULL);
buffer = blanks (1000); pos = 0; cells = {1, "two", {3}};
if rank == 0
  MPI_Pack (cells, buffer, pos, C);
  MPI_Send (buffer, 1, 2, C);
else
  MPI_Recv (buffer, 0, 2, C);
  clear cells
  MPI_Unpack (buffer, 0, C);
  same (cells, {1, "two", {3}});
end
w = [rank, rank];
[info, win] = MPI_Win_create (w, 8, MPI_INFO_NULL, C);
MPI_Win_fence (0, win);
MPI_Put (rank + 10, other, 1, win);
MPI_Win_fence (0, win);
same (w, [rank, other + 10]);
MPI_Win_free (win);
MPI_Errhandler_set (C, MPI_ERRORS_RETURN);
info = MPI_Send (1, 1000, 0, C);
[info, class] = MPI_Error_class (info);
same (class, MPI_ERR_RANK);
"""


def test_the_compiled_module_works_on_another_library(octave, mpich, tmp_path):
    script = tmp_path / "program.m"
    script.write_text(f"addpath ('{BUILT / 'mpitb'}');\n" + START + PORTABLE + END)
    line = [*mpich.launcher(2, os.cpu_count() or 1), "octave-cli", *OPTIONS, str(script)]
    env = variables(mpich) | {"LD_LIBRARY_PATH": str(mpich.prefix / "lib")}
    outcome = run_job(line, 60, env=env, cwd=tmp_path)
    # Its launcher mixes the lines of ranks.
    assert (outcome.code, outcome.out.count("is done")) == (0, 2), outcome.text


# --- utilities and programs -------------------------------------------------------------------------------------------


@pytest.fixture
def run(octave):
    """Evaluates code with the utilities and the example programs, which initialise MPI themselves."""

    def run_code(code: str, n: int, **options) -> str:
        text = f"addpath ('{EXAMPLES}');\n{code}\n"
        return octave.code(text, n=n, paths=("mpitb",), **options).out

    return run_code


def test_hello(run):
    lines = run("Hello", 3).splitlines()
    assert sorted(line.split(" on ")[0] for line in lines) == [f"Hello, this is process {i} of 3" for i in range(3)]


@pytest.mark.parametrize("mode", ["s", "r"])
def test_pi(run, mode):
    assert run(f"Pi (1e5, '{mode}');", 3).startswith("pi is 3.14159265")


def test_pi_with_few_intervals_warns(octave):
    outcome = octave.code(f"addpath ('{EXAMPLES}'); Pi (100);", n=1, paths=("mpitb",))
    assert "the error is" in outcome.err


@pytest.mark.parametrize("mode", ["s", "r"])
def test_pingpong(run, mode):
    assert run(f"PingPong (50, 4000, '{mode}');", 2).startswith("4000 bytes: ")


@pytest.mark.parametrize("program", ["mandelStrd", "mandelStrp", "mandelTBag"])
@pytest.mark.parametrize("n", [1, 3])
def test_mandelbrot(run, program, n):
    assert run(f"{program} (60, 50);", n).endswith("points inside\n")


def test_wavelets(run):
    assert "differs from one process by" in run("Wavelets (64);", 4)


def test_the_kernel_ep_has_the_sums_of_the_benchmark(run):
    assert run("ep ('S');", 2, limit=120).endswith("SUCCESSFUL\n")


@pytest.mark.parametrize("protocol", ["eval", "merge", "bcast", "ncmds"])
def test_spawned_processes(run, protocol):
    assert run(f"Spawn_slv_{protocol} (2);", 1).startswith(("2 processes", "the ranks of 2"))


def test_processes_that_are_spawned_without_utilities(run):
    assert run(f"Spawn_slv_nostartup (2, \"addpath ('{BUILT / 'mpitb'}'); \");", 1) == "2 processes have reported\n"


def test_time_stamps(run):
    out = run(
        r"""
        init_stamp (3);
        for label = {"main", "work_ini", "loop", "work_fin", "rest"}
          time_stamp (label{1});
        end
        global stamp_names stamp_times
        [seq, par] = discripar (struct ("names", {stamp_names}, "times", stamp_times), "work");
        last_stamp ();
        instr = clas_instr ();
        save_instr (instr, "stamps");
        instr = load_instr ("stamps");
        printf ("%s ", instr{:,1});
        printf ("(%s %s %s)\n", instr{2,3}{:,1});
        found = lkup_label ("loop", instr);
        disp (found{1,1});
        printf ("%d\n", abs (sum ([instr{1:end-1,2}]) - instr{end,2}) < 1e-9);
        look_instr (instr, 2);
        """,
        1,
    )
    assert "6 time stamps in" in out
    assert "main work - rest END TOTAL: (work_ini loop TOTAL:)" in out
    assert re.search(r"^ +2 +2\n1\n", out, flags=re.MULTILINE)
    assert re.search(r"^ +2 loop ", out, flags=re.MULTILINE)


def test_utilities_say_what_is_wrong(run):
    out = run(
        r"""
        for code = {"MPITB_Init (-1)", "Octave_Spawn (0)", "NumCmds_Init (1.5)", "NumCmds_Send ({'a'}, {1})", ...
                    "MPITB_Init (1, 'host')", "startup_mergeParent"}
          try
            eval (code{1});
          catch e
            printf ("%s\n", e.identifier);
          end
        end
        MPITB_Clean
        disp (nthargout (2, @MPI_Finalized));
        """,
        1,
    )
    assert out.split() == ["limosa:arg"] * 5 + ["limosa:spawn", "1"]


# --- MEX --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def mex(modules) -> str:
    """The folder of the MEX file that MATLAB would use, compiled for Octave."""
    prefix, out = Path(sys.executable).parent.parent, ROOT / "target" / "octave-mex"
    options = {"MPI_INCLUDE": prefix / "include/limosa", "MPI_LIB": prefix / "lib/limosa", "OPTIMIZATION": "-O0"}
    line = ["make", "mex", f"OUT={out}", *(f"{name}={value}" for name, value in options.items())]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(line, cwd=_octave.package() / "src", capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return str(out / "mex")


def test_the_mex_file_returns_what_the_octave_module_changes(octave, mex):
    text = f"addpath ('{mex}');\n" + textwrap.dedent("""
        m = @limosa_mex;
        m ("MPI_Init");
        C = m ("MPI_COMM_WORLD");
        [info, rank] = m ("MPI_Comm_rank", C);
        other = 1 - rank;
        assert (info, 0);
        if rank == 0
          m ("MPI_Send", [1 2 3], 1, 5, C);
        else
          [info, x, stat] = m ("MPI_Recv", zeros (1, 4), 0, 5, C);
          assert (x, [1 2 3 0]);
          assert ([stat.src, stat.tag, stat.cnt], [0 5 24]);
        end
        [info, s] = m ("MPI_Allreduce", int32 (rank + 1), int32 (0), m ("MPI_SUM"), C);
        assert (s, int32 (3));
        [info, receive] = m ("MPI_Irecv", zeros (1, 2), other, 6, C);
        [info, send] = m ("MPI_Isend", [rank, 7], other, 6, C);
        [info, receive, send, got, stats] = m ("MPI_Waitall", receive, send);
        assert (got, [other, 7]);
        assert (receive, m ("MPI_REQUEST_NULL"));
        assert (stats(1).cnt, 16);
        [info, request] = m ("MPI_Recv_init", "....", other, 7, C);
        for i = 1:2
          m ("MPI_Start", request);
          m ("MPI_Send", sprintf ("no %d", i), other, 7, C);
          [info, request, text] = m ("MPI_Wait", request);
          assert (text, sprintf ("no %d", i));
        end
        [info, all] = m ("MPI_Allgather", rank, [9 9], C);
        assert (all, [0 1]);
        [info, dup] = m ("MPI_Comm_dup", C);
        [info, dup] = m ("MPI_Comm_free", dup);
        assert (dup, m ("MPI_COMM_NULL"));
        [info, win] = m ("MPI_Win_create", [0 0], 8, m ("MPI_INFO_NULL"), C);
        [info, w] = m ("MPI_Win_fence", 0, win);
        m ("MPI_Put", rank + 10, other, 1, win);
        [info, w] = m ("MPI_Win_fence", 0, win);
        assert (w, [0, other + 10]);
        m ("MPI_Win_free", win);
        for code = {'m ("MPI_Nothing")', 'm ("MPI_Send", 1)', 'm ("MPI_Send", {}, 0, 0, C)', ...
                    'm ("MPI_Send", 1, "one", 0, C)', 'm ("MPI_Allgather", [1 2], [0 0], C)', "m ()"}
          try
            eval ([code{1} ";"]);
            printf ("no error\\n");
          catch e
            printf ("%s ", e.identifier);
          end
        end
        m ("MPI_Finalize");
        """)
    out = octave.code(text, n=2).out
    wanted = "limosa:missing limosa:usage limosa:class limosa:arg limosa:size limosa:usage"
    assert out.split() == wanted.split() * 2


CALLED_BY_MPI = """
m = @limosa_mex;
m ("MPI_Init");
C = m ("MPI_COMM_WORLD");
[info, rank] = m ("MPI_Comm_rank", C);

[info, op] = m ("MPI_Op_create", @(a, b) max (a, 10 * b), 1);
[info, s] = m ("MPI_Allreduce", int32 ([rank + 1, 3]), int32 ([0 0]), op, C);
assert ([info, double(s)], [0 20 30]);
[info, bad] = m ("MPI_Op_create", @(a, b) error ("mine:id", "no sum of %d", numel (a)), 1);
try
  m ("MPI_Allreduce", [1 2], [0 0], bad, C);
  disp ("no error");
catch e
  assert ({e.identifier, e.message}, {"mine:id", "limosa_mex: no sum of 2"});
end
[info, wrong] = m ("MPI_Op_create", @(a, b) [a, b], 1);
try
  m ("MPI_Allreduce", 1, 0, wrong, C);
  disp ("no error");
catch e
  assert (e.identifier, "limosa:class");
end
[info, op] = m ("MPI_Op_free", op);
assert (op, m ("MPI_OP_NULL"));

global seen = {};
function note (object, code)
  global seen;
  seen{end + 1} = {object, code};
end
[info, handler] = m ("MPI_Comm_create_errhandler", @note);
[info, D] = m ("MPI_Comm_dup", C);
m ("MPI_Comm_set_errhandler", D, handler);
code = m ("MPI_Send", 1, 9, 0, D);
assert (numel (seen) == 1 && seen{1}{1} == D && seen{1}{2} == code && code != 0);

copy = @(object, key, extra, value) deal (0, {extra, value}, 1);
function info = forget (object, key, value, extra)
  global seen;
  seen{end + 1} = value;
  info = 0;
end
[info, key] = m ("MPI_Comm_create_keyval", copy, @forget, "extra");
m ("MPI_Comm_set_attr", D, key, struct ("a", 5));
[info, E] = m ("MPI_Comm_dup", D);
[info, value, flag] = m ("MPI_Comm_get_attr", E, key);
assert ({info, value, flag}, {0, {"extra", struct("a", 5)}, 1});
m ("MPI_Comm_delete_attr", E, key);
assert (seen{end}, {"extra", struct("a", 5)});
[info, value, flag] = m ("MPI_Comm_get_attr", E, key);
assert (flag, 0);
[info, value, flag] = m ("MPI_Comm_get_attr", C, m ("MPI_TAG_UB"));
assert (flag && value > 1e4);
[info, plain] = m ("MPI_Comm_create_keyval", "MPI_COMM_DUP_FN", "MPI_COMM_NULL_DELETE_FN");
m ("MPI_Comm_set_attr", D, plain, "kept");
[info, F] = m ("MPI_Comm_dup", D);
[info, value] = m ("MPI_Comm_get_attr", F, plain);
assert (value, "kept");

[info, bytes] = m ("MPI_Pack_size", [1 2 3], C);
[info, more] = m ("MPI_Pack_size", "text", C);
buffer = zeros (1, bytes + more, "uint8");
[info, buffer, position] = m ("MPI_Pack", [1 2 3], buffer, 0, C);
[info, buffer, position] = m ("MPI_Pack", "text", buffer, position, C);
if rank == 0
  m ("MPI_Send", buffer, 1, 3, C);
else
  [info, buffer] = m ("MPI_Recv", zeros (1, numel (buffer), "uint8"), 0, 3, C);
end
[info, position, x] = m ("MPI_Unpack", buffer, 0, [0 0 0], C);
[info, position, y] = m ("MPI_Unpack", buffer, position, "....", C);
assert ({x, y}, {[1 2 3], "text"});

child = sprintf (["addpath ('%s'); m = @limosa_mex; m ('MPI_Init'); [info, parent] = m ('MPI_Comm_get_parent'); " ...
                  "m ('MPI_Send', 42, 0, 1, parent); m ('MPI_Comm_disconnect', parent); m ('MPI_Finalize');"], folder);
words = {"--no-gui", "--quiet", "--norc", "--eval", child};
[info, children, codes] = m ("MPI_Comm_spawn", "octave-cli", words, 1, m ("MPI_INFO_NULL"), 0, C);
assert (codes, 0);
if rank == 0
  [info, x] = m ("MPI_Recv", 0, 0, 1, children);
  assert (x, 42);
end
m ("MPI_Comm_disconnect", children);
m ("MPI_Finalize");
"""


def test_the_mex_file_calls_functions_of_the_program(octave, mex):
    octave.code(f"folder = '{mex}';\naddpath (folder);\n{CALLED_BY_MPI}", n=2)
