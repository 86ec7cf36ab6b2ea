"""`limosa run script.m`: a script sees what plain Octave shows it; errors end the job; nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jobs import Job, kill_rank_unseen, until_it_waits

LIMOSA = str(Path(sys.executable).parent / "limosa")


@pytest.fixture
def script(octave, tmp_path: Path):
    """Write a script and give the words that run it."""

    def words(text: str, *arguments: str, n: int = 3, options: tuple[str, ...] = ()) -> list[str]:
        file = tmp_path / "script.m"
        file.write_text(text)
        return [LIMOSA, "run", "-n", str(n), *options, str(file), *arguments]

    return words


def test_a_script_gets_its_words_and_may_use_functions_above_their_definition(script):
    text = """
    printf ("%s|", argv (){:}, program_name (), later (limosa_rank () + 1)); printf ("\\n");
    function text = later (x)
      text = inner (x);
    end
    function text = inner (x)
      text = sprintf ("%d of %d", x, limosa_size ());
    end
    """
    outcome = Job(script(text, "a b", "--gui", n=2)).wait(60)
    assert outcome.code == 0, outcome.text
    assert sorted(outcome.out.splitlines()) == [f"a b|--gui|script.m|{k} of 2|" for k in (1, 2)]
    assert "warning" not in outcome.err


def test_an_uncaught_error_ends_the_job_with_its_stack_and_rank(script):
    text = """
    if limosa_rank () == 1
      fails (3);
    end
    limosa_recv ();
    disp ("not reached");
    function fails (x)
      error ("some:id", "something\\nis wrong: %d", x);
    end
    """
    outcome = Job(script(text)).wait(60)
    assert outcome.code == 1, outcome.text
    marked = [line for line in outcome.err.splitlines() if line.startswith("[rank 1] ")]
    assert marked[:2] == ["[rank 1] error: something", "[rank 1] is wrong: 3"]
    assert "fails" in marked[3] and "line 8" in marked[3] and "line 3" in marked[4]
    assert "[rank 0]" not in outcome.err and "not reached" not in outcome.out
    assert outcome.err.count("something") == 1


def test_exit_handlers_of_a_failing_rank_run_after_its_report(script):
    text = """
    atexit ("bye");
    function bye (), printf ("bye %d\\n", limosa_rank ()); fflush (stdout); end
    function fails (), c = onCleanup (@() disp ("cleaned")); error ("no"); end
    printf ("before\\n"); limosa_barrier ();
    if limosa_rank () == 1, fails (); end
    limosa_barrier ();
    """
    outcome = Job(script(text, n=2)).wait(60)
    assert outcome.code == 1 and "[rank 1] error: no" in outcome.err, outcome.text
    assert outcome.out.splitlines() == ["before", "before", "cleaned", "bye 1"], outcome.text


def test_an_exit_handler_that_waits_for_other_ranks_does_not_keep_the_job(script):
    text = """
    atexit ("bye");
    function bye (), limosa_barrier (); end
    if limosa_rank () == 1, error ("no"); end
    limosa_recv (1);
    """
    outcome = Job(script(text, n=2)).wait(60)
    assert outcome.code == 1 and "[rank 1] error: no" in outcome.err, outcome.text


@pytest.mark.parametrize("text", ["keyboard", "dbstop in script2 at 2\nscript2 (3)"])
def test_a_stop_in_the_debugger_without_input_is_an_error(script, tmp_path, text):
    (tmp_path / "script2.m").write_text("function script2 (x)\n  y = x;\nend\n")
    outcome = Job(script(text, n=2), stdin=subprocess.DEVNULL).wait(60)
    assert outcome.code == 1 and "error: stopped in the debugger" in outcome.err, outcome.text
    assert "limosa shell --octave" in outcome.err and outcome.text.count("> ") < 10


def test_the_debugger_takes_commands_from_standard_input(script):
    job = Job(script("x = limosa_rank ();\nkeyboard\nprintf ('%d\\n', x);", n=1), stdin=subprocess.PIPE)
    job.process.stdin.write("x = 5;\ndbcont\n")
    job.process.stdin.close()
    job.process.stdin = None
    outcome = job.wait(60)
    assert outcome.code == 0 and outcome.out.endswith("5\n"), outcome.text


def test_an_error_on_all_ranks_is_printed_once(script):
    outcome = Job(script("x = [1 2;\ny = (3", n=4)).wait(60)
    assert outcome.code == 1
    assert outcome.err.count("parse error") == 1, outcome.err
    assert "another MPI library" not in outcome.err


def test_a_file_of_functions_runs_the_first_one(script):
    outcome = Job(
        script("function script ()\n  disp (other ());\nend\nfunction x = other ()\n  x = 5;\nend", n=1)
    ).wait(60)
    assert outcome.out == "5\n", outcome.text
    outcome = Job(script("function f (x)\n  disp (x);\nend\nf (3);", n=2)).wait(60)
    assert outcome.out == "3\n3\n", "commands behind functions make a script"


def test_a_file_of_functions_may_nest_them(script):
    text = "function script ()\n  k = 5;\n  function r = nested (x), r = x + k; end\n  disp (nested (1));\nend\n"
    outcome = Job(script(text, n=1)).wait(60)
    assert outcome.out == "6\n", outcome.text


def test_exit_on_a_rank_ends_the_job_with_its_code(script):
    outcome = Job(script("if limosa_rank () == 1, exit (3); end\nlimosa_recv (1);")).wait(60)
    assert outcome.code == 3, outcome.text
    assert "rank 1" in outcome.err


def test_an_error_after_which_others_wait_in_a_collective_call_ends_the_job(script):
    outcome = Job(script("if limosa_rank () == 2, limosa_send (1, 77); end\nlimosa_barrier ();")).wait(60)
    assert outcome.code == 1
    assert "[rank 2] error: limosa_send" in outcome.err and "77" in outcome.err


def test_the_death_of_another_rank_is_the_launchers_to_tell(script):
    job = Job(script("if limosa_rank () == 1, pause (1000); else, limosa_recv (1); end", n=2))
    kill_rank_unseen(job.process.pid, victim=1, witness=0)
    outcome = job.wait(20)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "SIGKILL" in outcome.err and "[rank 0]" not in outcome.err, outcome.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_behind_when_the_job_is_ended(script, tmp_path, number):
    job = Job(script("x = rand (10); disp ('ready'); fflush (stdout); limosa_recv ();"), cwd=tmp_path)
    assert job.read_lines(3) == ["ready"] * 3
    job.process.send_signal(number)
    outcome = job.wait(30)
    assert outcome.code == 128 + number, outcome.text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["script.m"]
    assert "octave-workspace" not in outcome.err


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7])
def test_nothing_is_left_behind_however_early_the_job_is_ended(script, tmp_path, delay):
    """Octave's own handlers are there before it reads any code."""
    job = Job(script("limosa_recv ();"), cwd=tmp_path)
    time.sleep(delay)
    job.process.send_signal(signal.SIGTERM)
    outcome = job.wait(30)
    # The signal may end the launcher itself, if that has not come to catch it yet.
    assert outcome.code in (128 + signal.SIGTERM, -signal.SIGTERM), outcome.text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["script.m"]
    assert "octave-workspace" not in outcome.err


def test_a_program_that_a_script_starts_has_its_own_handlers(script):
    line = script("limosa_rank (); system ('echo \\<$LD_PRELOAD\\>');", n=1)
    outcome = Job(line, env=os.environ | {"LD_PRELOAD": ""}).wait(30)
    assert outcome.out == "<>\n", outcome.text


def test_the_report_of_a_hang_names_the_lines(script, tmp_path):
    text = """
    if limosa_rank () == 0
      limosa_recv (1, 5);
    else
      waits ();
    end
    function waits ()
      x = limosa_recv (0, 6);
    end
    """
    outcome = Job(script(text, n=2, options=("--on-hang", "abort"))).wait(60)
    assert outcome.code != 0
    assert f"{tmp_path}/script.m:3" in outcome.err, outcome.err
    assert f"{tmp_path}/script.m:8 in waits" in outcome.err
    assert "or use limosa_sendrecv or limosa_irecv" in outcome.err


def test_what_is_missing_is_named(script, tmp_path):
    line = script("1", n=2)
    outcome = Job(line, env=os.environ | {"PATH": "/nowhere"}).wait(30)
    assert outcome.code == 2 and "apt-get install octave" in outcome.err
    folder = tmp_path / "bin"
    folder.mkdir()
    octave = subprocess.run(["which", "octave-cli"], capture_output=True, text=True, check=True).stdout.strip()
    (folder / "octave-cli").symlink_to(octave)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OCTAVE_LIMOSA_")}
    environment |= {"PATH": str(folder), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    outcome = Job(line, env=environment).wait(30)
    assert outcome.code == 3 and outcome.err.count("apt-get install octave-dev") == 1, outcome.text


def test_octave_knows_that_it_is_interrupted_while_it_waits(script, tmp_path):
    text = """
    limosa_send (1, 0); limosa_recv ();   % loads and starts everything: later it waits for nothing but messages
    unwind_protect
      disp ("ready"); fflush (stdout);
      limosa_recv ();
    unwind_protect_cleanup
      disp ("cleaned up"); fflush (stdout);
    end_unwind_protect
    """
    file = tmp_path / "script.m"
    script(text)
    job = Job([sys.executable, "-m", "limosa._octave", str(file)], cwd=tmp_path)
    assert job.read_lines(1) == ["ready"]
    until_it_waits(job.process.pid)
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait(30)
    assert "cleaned up" in outcome.out, outcome.text


def test_a_long_message_is_sent_whole_though_its_sender_is_interrupted(script, tmp_path):
    text = """
    x = rand (1, 1e6);   % too long to be sent before its receive
    limosa_send (1, 0, 2); limosa_recv (0, 2);   % loads and starts everything: later it waits for nothing but messages
    disp ("ready"); fflush (stdout);
    unwind_protect
      limosa_send (x, 0, 3);
    unwind_protect_cleanup
      later = limosa_sendrecv (1:2000, 0, 0, 4);
      printf ("%d %d\\n", isequal (limosa_recv (0, 3), x), isequal (later, 1:2000)); fflush (stdout);
    end_unwind_protect
    """
    script(text)
    job = Job([sys.executable, "-m", "limosa._octave", str(tmp_path / "script.m")], cwd=tmp_path)
    assert job.read_lines(1) == ["ready"]
    until_it_waits(job.process.pid)
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait(30)
    assert outcome.out == "1 1\n", outcome.text


def test_an_interrupt_waits_for_the_second_half_of_a_message(script, tmp_path):
    """Rank 1 sends the envelope of a value, interrupts rank 0, and then sends the body."""
    text = """
    MPI_Init;
    world = MPI_COMM_WORLD;
    if limosa_rank () == 0
      limosa_send (getpid (), 1);
      unwind_protect
        x = limosa_recv (1, 5);
        while true, end
      unwind_protect_cleanup
        printf ("%d %d\\n", isequal (x, 1:1000), limosa_recv (1, 6)); fflush (stdout);
        limosa_send ("done", 1);
      end_unwind_protect
    else
      other = limosa_recv (0);
      [~, ~, tag] = MPI_Attr_get (world, MPI_TAG_UB);
      bytes = limosa_serialize (1:1000);
      envelope = bytes(1:48);
      envelope(6) = 128;
      head = [envelope(:)', typecast(int32 (tag), "uint8")];
      body = bytes(49:end);
      MPI_Ssend (head, 0, 5, world);   % until rank 0 has begun to receive
      system (sprintf ("kill -INT %d", other));
      pause (0.7);
      MPI_Send (body, 0, tag, world);
      limosa_send (42, 0, 6);
      limosa_recv (0);
    end
    """
    outcome = Job(script(text, n=2, options=("--dialect", "mpitb")), cwd=tmp_path).wait(30)
    assert "1 42\n" in outcome.out, outcome.text


def test_a_script_runs_on_another_library(mpich, script, tmp_path):
    text = """
    MPI_Init;
    [~, name] = MPI_Get_library_version;
    r = limosa_rank ();
    request = limosa_isend ({r, ones(300)}, 1 - r, 2);
    x = limosa_recv (1 - r, 2);
    limosa_wait (request);
    y = limosa_sendrecv (r * ones (1, 5000), 1 - r, 1 - r);
    line = sprintf ("%s %d %d %d\\n", name(1:5), x{1}, y(end), limosa_allreduce (sum (x{2}(:))));
    % MPICH's launcher mixes the parts of lines.
    for turn = 0:1
      if turn == r
        puts (line); fflush (stdout);
        pause (0.2);
      end
      limosa_barrier ();
    end
    """
    outcome = Job(script(text, n=2, options=("--mpi", "mpich", "--dialect", "mpitb")), cwd=tmp_path).wait(60)
    assert outcome.code == 0, outcome.text
    assert sorted(re.findall("MPICH [01] [01] [0-9]+", outcome.out)) == ["MPICH 0 0 180000", "MPICH 1 1 180000"]


def test_functions_beside_the_script_are_found_from_another_folder(octave):
    folder = octave.folder / "elsewhere"
    folder.mkdir()
    (folder / "helper.m").write_text("function y = helper (x)\n  y = 2 * x;\nend\n")
    (folder / "main.m").write_text("printf('%d\\n', helper (limosa_rank() + 1));\n")
    outcome = octave.run(folder / "main.m", n=2)
    assert sorted(outcome.out.split()) == ["2", "4"]
