"""limosa_map and limosa_run."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest
from conftest import BUILT, LIMOSA, OPTIONS, ROOT


def test_map_gives_all_results_to_all(octave):
    octave.code_in_turn(
        """
        1;
        function check (is_right) if (! is_right) error ("wrong"); end, end
        check (isequal (limosa_map (@(x) x ^ 2, 1:20), num2cell ((1:20) .^ 2)));
        check (isequal (limosa_map ("numel", {"a", "bcd"; "", {}}), {1, 3; 0, 0}));
        check (isequal (size (limosa_map (@numel, {})), [0 0]));
        check (isequal (limosa_map (@(a, b, c) [a b c], {1, 2}, 3:4, {5; 6}), {[1 3 5], [2 4 6]}));
        try limosa_map (@plus, 1:3, 1:2); message = ""; catch problem, message = problem.message; end
        check (any (strfind (message, "lists of items have 3, 2 elements")));
        ranks = limosa_map (@(x) limosa_rank (), 1:50);
        check (all (ismember ([ranks{:}], 0:2)));
        try
          limosa_map (@(x) error ("some:id", "bad %d", x), [7 8]);
          check (false);
        catch problem
          check (strcmp (problem.identifier, "some:id") && ! isempty (strfind (problem.message, "item 1: bad 7")));
        end
        half = limosa_split (mod (limosa_rank (), 2));
        check (isequal (limosa_map (@(x) -x, 1:3, half), {-1, -2, -3}));
        """,
        n=3,
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_functions_of_an_spmd_block_do_what_mathworks_documents(octave, n):
    octave.code_in_turn(
        """
        1;
        function check (is_right) if (! is_right) error ("wrong"); end, end
        n = spmdSize (); me = spmdIndex ();
        check (isequal ([me, n], [labindex(), numlabs()]) && isa (me, "double"));
        check (isequal (spmdCat (me), 1:n) && isequal (gcat ([me; 2 * me]), [1:n; 2:2:2 * n]));
        check (isequal (spmdCat (me, 1), (1:n)'));
        check (isequal (gcat ({me, "a"}, 1), [num2cell((1:n)'), repmat({"a"}, n, 1)]));
        check (spmdPlus (me) == n * (n + 1) / 2 && isequal (gplus (ones (2, 1) * me), [1; 1] * n * (n + 1) / 2));
        check (isequal (spmdPlus (me, n), merge (me == n, n * (n + 1) / 2, [])));
        check (isequal (gop (@(x, y) [x, y], "a" + me - 1), "a" + (0:n-1)) && gop ("max", me) == n);
        check (isequal (spmdReduce (@max, me, 1), merge (me == 1, n, [])));
        right = mod (me, n) + 1; left = mod (me - 2, n) + 1;
        check (spmdSendReceive (right, left, me) == left && labSendReceive (right, left, me, 9) == left);
        if (me == 1) b = labBroadcast (1, magic (3)); else b = spmdBroadcast (1); end
        check (isequal (b, magic (3)));
        if (me == 1)
          labSend ({1, "x"}, 2:n, 5);
          spmdSend (7, 2:n);
        end
        labBarrier;
        if (me > 1)
          [found, source, tag] = labProbe (1, 5); check (found && source == 1 && tag == 5);
          [b, source, tag] = spmdReceive (1, 5); check (isequal (b, {1, "x"}) && source == 1 && tag == 5);
          [b, source, tag] = labReceive ("any"); check (b == 7 && source == 1 && tag == 0);
          check (! spmdProbe);
        end
        spmdBarrier;
        if (n > 1 && me == 1)
          check (isempty (labSendReceive (2, [], 4)));
        elseif (me == 2)
          check (spmdSendReceive ([], 1, []) == 4);
        end
        check (isequal (limosa_spmd (@(x) x * labindex (), 3), num2cell (3 * (1:n))));
        check (isequal (limosa_spmd (n, "spmdSize"), num2cell (n * ones (1, n))));
        for index = {0, n + 1, 1.5, "all"}
          try spmdSend (1, index{1}); message = ""; catch problem, message = problem.message; end
          check (any (strfind (message, "the index of a worker must be an integer from 1 to")));
        end
        check (isequal (size (limosa_spmd (@() fflush (stdout))), [1, n]));
        """,
        n=n,
    )


def interactive(text: str) -> subprocess.CompletedProcess:
    """What an Octave prints that is no rank."""
    paths = f"addpath('{ROOT}/octave/inst'); addpath('{BUILT}/limosa');"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    environment["PATH"] = f"{LIMOSA.parent}:{environment['PATH']}"
    line = ["octave-cli", *OPTIONS, "--eval", paths + text]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(line, capture_output=True, text=True, env=environment, cwd=folder, timeout=300)


def test_an_spmd_function_starts_processes_from_the_prompt(modules):
    done = interactive('r = limosa_spmd (3, @(x) x * spmdPlus (labindex ()), 2); printf ("%d ", r{:})')
    assert done.stdout == "12 12 12 ", done.stderr


def test_a_function_runs_on_several_processes_from_the_prompt(modules):
    done = interactive(
        """
        offset = 10;
        r = limosa_run (3, @(x) {limosa_rank() + offset, x, limosa_allreduce(1)}, "a");
        for k = 1:3, printf ("%d %s %d|", r{k}{:}); end
        r = limosa_run (2, @() disp ("printed")); disp (size (r));
        try
          limosa_run (2, @(k) error ("some:id", "failed with %d", k), 5);
        catch problem
          disp (problem.identifier); disp (problem.message);
        end
        try limosa_run (0, @sin), catch problem, disp (problem.identifier), end
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10 a 3|11 a 3|12 a 3|"), done.stdout
    assert done.stdout.count("printed") == 2
    assert "some:id\non rank" in done.stdout and "failed with 5" in done.stdout and "limosa:arg" in done.stdout
