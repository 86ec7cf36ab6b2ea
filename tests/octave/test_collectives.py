"""Collective operations of the modern API: values of any class, reductions as Octave would do them."""

from __future__ import annotations

import pytest

START = """
r = limosa_rank (); n = limosa_size (); last = n - 1;
function check (is_right) if (! is_right) error ("wrong"); end, end
"""


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_values_reach_those_who_should_have_them(octave, n):
    octave.code_in_turn(
        START
        + """
        for value = {pi, "text", rand(300), {1, struct("a", 2)}, [], sparse(eye (3))}
          got = limosa_bcast (merge (r == last, value{1}, "nothing"), last);
          check (isequal (class (got), class (value{1})) && isequal (size (got), size (value{1})));
        end
        check (isequal (limosa_allgather (repmat ("x", 1, r)), arrayfun (@(k) repmat ("x", 1, k), 0:last, ...
                                                                         "UniformOutput", false)));
        got = limosa_gather ({r}, last);
        check (isequal (got, merge (r == last, num2cell (num2cell (0:last)), [])));
        check (limosa_scatter (merge (r == 0, 10:10 + last, [])) == 10 + r);
        check (strcmp (limosa_scatter (merge (r == last, repmat ({"a"}, 1, n), []), last), "a"));
        check (isequal (limosa_alltoall (num2cell (10 * r + (0:last))), num2cell (10 * (0:last) + r)));
        limosa_barrier ();
        """.replace("num2cell (num2cell (0:last))", "arrayfun (@(k) {{k}}, 0:last)"),
        n=n,
    )


def test_long_and_short_values_of_several_classes_arrive_together(octave):
    """Short bodies travel with their envelopes, long ones from array to array."""
    octave.code_in_turn(
        START
        + """
        values = {1:1000, "short", magic(300), {magic(100), "in a cell"}, int8(1:26), 1:27, [], single(1i)};
        for k = 1:numel (values)
          value = @(from, to) values{mod (k + from + to, numel (values)) + 1};
          for root = [0 last]
            got = limosa_gather (value (r, 0), root);
            check (isequal (got, merge (r == root, arrayfun (@(q) {value(q, 0)}, 0:last), [])));
            got = limosa_scatter (merge (r == root, arrayfun (@(q) {value(root, q)}, 0:last), {}), root);
            check (isequal (got, value (root, r)) && isequal (class (got), class (value (root, r))));
          end
          got = limosa_allgather ({value(r, 0), r});
          check (isequal (cellfun (@(x) x{2}, got), 0:last));
          got = limosa_alltoall (arrayfun (@(q) {{r, q, value(r, q)}}, 0:last));
          check (isequal (cellfun (@(x) x{1}, got), 0:last) && all (cellfun (@(x) x{2}, got) == r));
          got = limosa_alltoall (arrayfun (@(q) {1000 * r + q + zeros(1, 20 * q)}, 0:last));
          check (isequal (got, arrayfun (@(q) {1000 * q + r + zeros(1, 20 * r)}, 0:last)));
          x = r + zeros (1, 1000 * r);
          got = limosa_allgather (x);
          x(:) = -1;      % what was gathered is not x itself
          check (isequal (got, arrayfun (@(q) {q + zeros(1, 1000 * q)}, 0:last)));
        end
        """,
        n=3,
    )


@pytest.mark.parametrize("n", [1, 3])
def test_reductions_are_those_of_octave(octave, n):
    octave.code_in_turn(
        START
        + """
        check (isequal (limosa_allreduce (ones (2, 3)), n * ones (2, 3)));
        check (isequal (limosa_allreduce (single (1i)), single (n * 1i)));
        check (isequal (limosa_allreduce (int8 (100)), n * int8 (100))); % saturates
        check (isequal (limosa_allreduce (true), n));
        check (isequal (limosa_allreduce (r == 0, "lor"), true) && islogical (limosa_allreduce (true, "land")));
        check (limosa_allreduce (merge (r == 0, NaN, r), "max") == max ([NaN 1:last]) || n == 1);
        check (limosa_allreduce (-r, "min") == -last && limosa_allreduce (int16 (r), "max") == last);
        check (limosa_allreduce (uint8 (2 ^ r), "bor") == 2 ^ n - 1);
        check (limosa_allreduce (2, "prod") == 2 ^ n);
        check (isequal (limosa_allreduce ({r}, @(a, b) [a b]), num2cell (0:last)));
        check (isequal (limosa_allreduce (ones (1, 1 + (r == 0)), @(a, b) [a b]), ones (1, n + 1)));
        total = limosa_reduce (r, "sum", last);
        check (isequal (total, merge (r == last, sum (0:last), [])));
        check (limosa_scan (1) == r + 1 && strcmp (limosa_scan ("x", @(a, b) [a b]), repmat ("x", 1, r + 1)));
        check (isequal (limosa_allreduce (sparse ([1 0])), sparse ([n 0])));
        """,
        n=n,
    )


def test_what_one_rank_cannot_send_is_an_error_on_all(octave):
    outcome = octave.code_in_turn(
        """
        calls = {@() limosa_bcast(inputParser()), @() limosa_scatter({1}), @() limosa_allgather(inputParser()), ...
                 @() limosa_alltoall(merge (limosa_rank () == 0, {1, inputParser()}, {1, 2})), ...
                 @() limosa_allreduce(ones (1, 2 + limosa_rank ()))};
        for call = calls
          try
            call{1}();
            printf ("nothing\\n");
          catch problem
            printf ("%s\\n", problem.message);
          end
        end
        """,
        n=2,
    )
    lines = outcome.out.splitlines()
    assert sum("'inputParser'" in line for line in lines) == 6
    assert sum("1 values for 2 ranks" in line for line in lines) == 2
    assert sum("nonconformant" in line for line in lines) == 2
    assert sum("on rank 0" in line for line in lines) >= 2
