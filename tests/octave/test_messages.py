"""Messages of the modern API: any value, any source and tag, requests, communicators; errors have identifiers."""

from __future__ import annotations

import pytest

START = """
r = limosa_rank (); n = limosa_size (); right = mod (r + 1, n); left = mod (r - 1, n);
function check (is_right) if (! is_right) error ("wrong"); end, end
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_values_of_any_class_and_length_go_round(octave, n):
    """Each rank has other values, which its neighbour makes again to compare."""
    octave.code_in_turn(
        START
        + """
        function values = values_of (rank)
          rand ("twister", 1 + rank);
          values = {1 + rank, sprintf("text %d", rank), {rank, {2}}, struct("a", {rank, 2}), sprand(200, 300, 0.1), ...
                    rand(400, 300), zeros(0, 3 + rank), rand(20, 20, 20), rand(4, 4, 4, 4, 4), rank == 1, ...
                    int8(rank + (1:5000)), single(1i + rank)};
        end
        function is_same = is_same (a, b)
          is_same = isequal (a, b) && isequal (size (a), size (b)) && strcmp (class (a), class (b));
        end
        captured = r;
        mine = values_of (r); theirs = values_of (left);
        check (n == 1 || ! isequal (mine, theirs));
        for k = 1:numel (mine)
          value = mine{k}; awaited = theirs{k};
          got = limosa_sendrecv ({value, r}, right, left, 5);
          check (is_same (got{1}, awaited)); check (got{2} == left);
          [got, status] = limosa_sendrecv (value, right, left);
          check (is_same (got, awaited)); check (status.source == left && status.tag == 0);
          if (n > 1)
            if (r == 0) limosa_send (value, right, 8); end
            [got, status] = limosa_recv (left);
            check (is_same (got, awaited) && status.tag == 8);
            if (r > 0) limosa_send (value, right, 8); end
          end
        end
        f = limosa_sendrecv (@(x) x + captured, right, left); check (f (1) == 1 + left);
        """,
        n=n,
    )


def test_any_source_and_any_tag(octave):
    octave.code_in_turn(
        START
        + """
        if (r == 0)
          seen = [];
          for k = 2:n
            status = limosa_probe ();
            [x, got] = limosa_recv ("any", status.tag);
            check (x == 10 * got.tag && got.tag == got.source);
            seen(end + 1) = got.source;
          end
          check (isequal (sort (seen), 1:n - 1));
          check (! limosa_iprobe ());
        else
          limosa_send (10 * r, 0, r);
        end
        """,
        n=4,
    )


def test_receives_under_way_match_in_order_and_let_long_sends_end(octave):
    octave.code_in_turn(
        START
        + """
        first = limosa_irecv (left, 1); second = limosa_irecv (left, 1); any = limosa_irecv ();
        check (! limosa_test (any));
        limosa_send (rand (500), right, 1); % needs the receiver
        limosa_barrier ();
        sends = [limosa_isend("second", right, 1), limosa_isend({3}, right, 9)];
        check (strcmp (limosa_wait (second), "second"));
        check (isequal (size (limosa_wait (first)), [500 500]));
        values = limosa_waitall ([any sends]);
        check (isequal (values, {{3}, [], []}));
        try limosa_wait (first); catch problem, check (strcmp (problem.identifier, "limosa:request")); end
        """,
        n=3,
    )


def test_a_wait_for_one_receive_lets_the_long_send_of_another_end(octave):
    octave.code_in_turn(
        START
        + """
        if (r == 0)
          limosa_send (2 * ones (1000), 1, 2);
          limosa_send (1, 1, 1);
        else
          first = limosa_irecv (0, 1);
          second = limosa_irecv (0, 2);
          check (limosa_wait (first) == 1);
          check (isequal (size (limosa_wait (second)), [1000 1000]));
        end
        """,
        n=2,
    )


def test_a_message_goes_to_the_oldest_receive_that_wants_it(octave):
    """Also if it comes between the looks for two of them."""
    octave.code_in_turn(
        START
        + """
        for k = 1:300
          if (r == 0)
            requests = [limosa_irecv(1, 3), limosa_irecv()];
            values = limosa_waitall (requests);
            check (isequal (values, {k, -k}));
          else
            limosa_send (k, 0, 3);
            limosa_send (-k, 0, 4);
          end
        end
        """,
        n=2,
    )


def test_long_messages_of_several_tags_are_received_in_any_order(octave):
    octave.code_in_turn(
        START
        + """
        if (r == 0)
          for tag = 1:3, limosa_send (tag * ones (200), 1, tag); end
        else
          second = limosa_irecv (0, 2);
          first = limosa_recv (0, 1);
          check (first(end) == 1);
          third = limosa_recv (0, 3);
          x = limosa_wait (second);
          check (third(end) == 3 && x(end) == 2);
        end
        """,
        n=2,
    )


def test_a_request_that_the_program_lets_go_takes_no_message(octave):
    octave.code_in_turn(
        START
        + """
        if (r == 0)
          for k = 1:9, limosa_send (k, 1, k); end
          for k = 1:2, limosa_send (rand (500), 1, 20); end
          limosa_barrier ();
          limosa_send (10, 1, 10); limosa_send (11, 1, 11); limosa_send (12, 1, 12); limosa_send (13, 1, 12);
        else
          function abandoned (), request = limosa_irecv (0, 2); limosa_iprobe (0, 99); end
          function failed (), request = limosa_irecv (0, 3); error ("some:id", "no"); end
          request = limosa_irecv (0, 1); clear request
          check (limosa_recv (0, 1) == 1);
          abandoned (); check (limosa_iprobe (0, 2) && limosa_probe (0, 2).tag == 2 && limosa_recv (0, 2) == 2);
          try failed (); end
          check (limosa_recv (0, 3) == 3);
          request = limosa_irecv (); limosa_cancel (request);
          try limosa_wait (request); message = ""; catch problem, message = problem.message; end
          check (any (strfind (message, "withdrawn")));
          % A copy, a cell and an array keep a request, whatever becomes of the variable.
          request = limosa_irecv (0, 4); copy = request; clear request
          check (limosa_wait (copy) == 4);
          in_cell = {limosa_irecv(0, 5)}; check (limosa_wait (in_cell{1}) == 5);
          requests = zeros (1, 2); requests(1) = limosa_irecv (0, 6); requests(2) = limosa_irecv (0, 7);
          requests = [requests, limosa_irecv(0, 8)];
          check (isequal (limosa_waitall (requests), {6, 7, 8}));
          check (isequal (limosa_waitall (arrayfun (@(tag) limosa_irecv (0, tag), 9)), {9}));
          % What a withdrawn request had received is for the next receive, also one that waits already.
          long = limosa_irecv (0, 20); other = limosa_irecv (0, 20);
          do [done, x] = limosa_test (other); until done
          limosa_cancel (long);
          check (isequal (size (x), [500 500]) && isequal (size (limosa_recv (0, 20)), [500 500]));
          first = limosa_irecv (0, 12); second = limosa_irecv (0, 12); third = limosa_irecv (0, 12);
          limosa_barrier ();
          check (limosa_recv (0, 10) == 10 && limosa_recv (0, 11) == 11);
          check (limosa_wait (second) == 13);
          clear first
          check (limosa_wait (third) == 12);
        end
        if (r == 0), request = limosa_isend (rand (500), 1, 30); clear request, limosa_send (1, 1, 31);
        else check (isequal (size (limosa_recv (0, 30)), [500 500]) && limosa_recv (0, 31)); end
        """,
        n=2,
    )


def test_wrong_arguments_are_errors_with_identifiers(octave):
    outcome = octave.code(
        """
        calls = {@() limosa_send(1, 99), @() limosa_send(1, 0, -5), @() limosa_send(1, "x"), @() limosa_send(1), ...
                 @() limosa_recv(99), @() limosa_irecv(0, -7), @() limosa_send(inputParser(), 0), ...
                 @() limosa_rank(int32(12345)), @() limosa_rank("world"), @() limosa_wait(77), ...
                 @() limosa_bcast(1, 5), @() limosa_allreduce(1, "add")};
        for call = calls
          try
            call{1}();
          catch problem
            printf ("%s|%s\\n", problem.identifier, problem.message);
          end
        end
        """,
        n=1,
    )
    lines = outcome.out.splitlines()
    assert [line.split("|")[0].removeprefix("limosa:") for line in lines] == [
        *("rank", "tag", "arg", "arg", "rank", "tag", "class", "comm", "comm", "request", "root", "op")
    ]
    assert "99" in lines[0] and "limosa_send (x, to, tag, comm)" in lines[3]
    functions = ["limosa_send", "limosa_send", *["limosa_recv", "limosa_irecv"], "limosa_rank"]
    assert [lines[k].split("|")[1].split(":")[0] for k in (0, 1, 4, 5, 7)] == functions


def test_communicators_are_apart(octave):
    octave.code_in_turn(
        START
        + """
        half = limosa_split (mod (r, 2), -r);
        check (limosa_size (half) == 2 && limosa_rank (half) == (r < 2));
        check (limosa_allreduce (r, "sum", half) == 2 * mod (r, 2) + 2);
        none = limosa_split (merge (r == 0, [], 1));
        check (isempty (none) == (r == 0));
        copy = limosa_dup ();
        limosa_send ("world", right); limosa_send ("copy", right, 0, copy);
        check (strcmp (limosa_recv (left, 0, copy), "copy") && strcmp (limosa_recv (left), "world"));
        limosa_free (half); limosa_free (copy);
        """,
        n=4,
    )
