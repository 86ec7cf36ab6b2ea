"""MPITB's interface: calls that change the caller's variables, and requests."""

from __future__ import annotations

import re
import subprocess

from conftest import BUILT, ROOT

EXAMPLES = ROOT / "octave" / "examples" / "mpitb"


def test_every_function_and_constant_can_be_loaded(mpitb):
    names = re.findall(r'autoload \("(\w+)"', (BUILT / "mpitb" / "PKG_ADD").read_text())
    assert len(names) > 800
    table = subprocess.run(
        ["cargo", "run", "--quiet", "--package", "limosa-api", "--", "octave-coverage"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    promised = re.findall(r"^\| (MPI_\w+) \| (?:rules|by hand)", table, flags=re.MULTILINE)
    assert set(promised) <= set(names)
    # A function without enough arguments says how it is called; a constant has a value.
    listed = ", ".join(f'"{name}"' for name in names)
    mpitb.passes(
        f"""
        for name = {{{listed}}}
          try
            if ! any (strcmp (name{{1}}, {{"MPI_Init", "MPI_Finalize"}}))
              feval (name{{1}}, "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x");
            end
          catch e
            if ! any (strcmp (e.identifier, {{"limosa:usage", "limosa:name", "limosa:arg"}}))
              error ("%s: %s %s", name{{1}}, e.identifier, e.message);
            end
          end
        end
        """,
        n=1,
        is_alone=True,
    )


# --- buffers ----------------------------------------------------------------------------------------------------------

CLASSES = ["double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "logical"]


def test_values_of_all_classes_arrive_in_the_callers_variable(mpitb):
    mpitb.passes(
        f"""
        values = {{"text", 'x', true, 1+2i, single([1+2i, 3]), [], zeros(0,3), ones(2,3,2), 3.5}};
        for name = {{{", ".join(f'"{name}"' for name in CLASSES)}}}
          values{{end+1}} = cast ([1 0; 1 1], name{{1}});
          values{{end+1}} = cast (1, name{{1}});
        end
        for i = 1:numel (values)
          v = values{{i}};
          if rank == 0
            info = MPI_Send (v, 1, i, C);
          else
            r = v;
            r(:) = 0;
            if iscomplex (v) r = complex (r); end
            [info, stat] = MPI_Recv (r, 0, i, C);
            same (r, v);
            [info, bytes] = MPI_Get_count (stat);
            [info, n] = MPI_Get_elements (stat, r);
            same (n, numel (v));
            same (bytes, stat.cnt);
          end
          same (info, 0);
        end
        """
    )


def test_a_shorter_message_changes_the_first_elements_only(mpitb):
    mpitb.passes(
        """
        v = [1 2 3];
        if rank == 0
          MPI_Send (v(1:2), 1, 0, C);
        else
          r = [7 8; 9 10];
          [info, stat] = MPI_Recv (r, MPI_ANY_SOURCE, MPI_ANY_TAG, C);
          same (r, [1 8; 2 10]);
          same ([stat.src, stat.tag, stat.err, stat.cnt, stat.len, stat.can], [0 0 0 16 16 0]);
        end
        """
    )


def test_aliases_constants_and_other_scopes_keep_their_values(mpitb):
    mpitb.passes(
        """
        function r = local (rank, C)
          for i = 1:3
            r = 5;              # a constant of the program: must be 5 each time
            same (r, 5);
            if rank == 0, MPI_Send (i, 1, 0, C); r = i; else MPI_Recv (r, 0, 0, C); end
            same (r, i);
          end
        end
        global g
        same (local (rank, C), 3);
        a = zeros (1, 3);
        b = a;
        columns = a(:);
        s.field = a;
        g = [1 2 3];
        r = 1:3;                # a range
        e = eye (2);            # a diagonal matrix
        if rank == 0
          x = [4 5 6];
          for i = 1:3, MPI_Send (x, 1, 1, C); end
          MPI_Send ([1 2 3 4], 1, 1, C);
        else
          MPI_Recv (a, 0, 1, C);
          same (a, [4 5 6]);
          same (b, zeros (1, 3));
          same (columns, zeros (3, 1));
          same (s.field, zeros (1, 3));
          MPI_Recv (g, 0, 1, C);
          MPI_Recv (r, 0, 1, C);
          same (r, [4 5 6]);
          MPI_Recv (e, 0, 1, C);
          same (e, [1 3; 2 4]);
          clear g
          global g
          same (g, [4 5 6]);
        end
        """
    )


def test_wrong_arguments_are_errors_with_identifiers(mpitb):
    mpitb.passes(
        """
        x = 1;
        sp = sparse (1);
        c = {1};
        throws ("limosa:usage", "MPI_Send (x)");
        throws ("limosa:usage", "MPI_Send (x, 0, 0, C, 1)");
        throws ("limosa:usage", "MPI_COMM_WORLD (1)");
        throws ("limosa:name", "MPI_Recv (1 + 1, 0, 0, C)");
        throws ("limosa:name", "MPI_Recv (zeros (2), 0, 0, C)");
        throws ("limosa:name", "MPI_Recv (c{1}, 0, 0, C)");
        throws ("limosa:name", "MPI_Comm_free (MPI_COMM_WORLD)");
        throws ("limosa:class", "MPI_Send (c, 0, 0, C)");
        throws ("limosa:class", "MPI_Recv (sp, 0, 0, C)");
        throws ("limosa:class", "MPI_Send (@sin, 0, 0, C)");
        throws ("limosa:arg", "MPI_Send (x, 'one', 0, C)");
        throws ("limosa:arg", "MPI_Send (x, 0.5, 0, C)");
        throws ("limosa:arg", "MPI_Send (x, [0 1], 0, C)");
        throws ("limosa:arg", "MPI_Send (x, 0, 0, 'world')");
        throws ("limosa:arg", "MPI_Info_set (MPI_INFO_NULL, 1, 'value')");
        y = int8 (1);
        throws ("limosa:class", "MPI_Allreduce (x, y, MPI_SUM, C)");
        two = [1 2];
        throws ("limosa:size", "MPI_Allreduce (two, x, MPI_SUM, C)");
        throws ("limosa:size", "MPI_Allgather (two, x, C)");
        throws ("limosa:size", "MPI_Allgatherv (two, x, [1 2 3], [0 1], C)");
        throws ("limosa:size", "MPI_Allgatherv (two, two, [1 1], [0 2], C)");
        throws ("limosa:size", "MPI_Allgatherv (two, two, [1 1], [-1 0], C)");
        """
    )


def test_statements_print_nothing_and_return_what_is_asked_for(mpitb):
    outcome = mpitb.code(
        """
        MPI_Comm_rank (C)
        MPI_Barrier (C)
        info = MPI_Barrier (C);
        """,
        n=1,
    )
    assert outcome.out == "0 is done\n"


# --- requests ---------------------------------------------------------------------------------------------------------


WAYS_TO_WAIT = """
other = 1 - rank;
for way = {"wait", "waitall", "array", "waitany", "waitsome", "test", "testall", "testany", "testsome"}
  a = 0; b = [0 0];
  [info, ra] = MPI_Irecv (a, other, 1, C);
  [info, rb] = MPI_Irecv (b, other, 2, C);
  [info, sa] = MPI_Isend (rank + 10, other, 1, C);
  [info, sb] = MPI_Isend ([rank, 5], other, 2, C);
  same (mpitb_held () > 0, true);
  switch way{1}
    case "wait"
      [info, stat] = MPI_Wait (ra);
      same (stat.tag, 1);
      MPI_Wait (rb); MPI_Wait (sa); MPI_Wait (sb);
    case "waitall"
      [info, stats] = MPI_Waitall (ra, rb, sa, sb);
      same ([stats(1:2).tag], [1 2]);
    case "array"
      all = [ra, rb, sa, sb];
      MPI_Waitall (all);
      same (all, repmat (MPI_REQUEST_NULL, 1, 4));
      ra = rb = sa = sb = MPI_REQUEST_NULL;
    case "waitany"
      seen = [];
      for i = 1:4, [info, seen(end+1), stat] = MPI_Waitany (ra, rb, sa, sb); end
      same (sort (seen), [0 1 2 3]);
      [info, none] = MPI_Waitany (ra, rb, sa, sb);
      same (none, MPI_UNDEFINED);
    case "waitsome"
      seen = [];
      while numel (seen) < 4
        [info, some, stats] = MPI_Waitsome (ra, rb, sa, sb);
        same (numel (stats), numel (some));
        seen = [seen, some];
      end
      same (sort (seen), [0 1 2 3]);
    case "test"
      do [info, flag, stat] = MPI_Test (ra); until flag
      same (stat.src, other);
      do [info, flag] = MPI_Test (rb); until flag
      do [info, flag] = MPI_Test (sa); until flag
      do [info, flag] = MPI_Test (sb); until flag
    case "testall"
      do [info, flag, stats] = MPI_Testall (ra, rb, sa, sb); until flag
      same (stats(2).cnt, 16);
    case "testany"
      n = 0;
      while n < 4
        [info, index, flag, stat] = MPI_Testany (ra, rb, sa, sb);
        n += flag;
      end
    case "testsome"
      seen = [];
      while numel (seen) < 4
        [info, some, stats] = MPI_Testsome (ra, rb, sa, sb);
        seen = [seen, some];
      end
  end
  same ([ra, rb, sa, sb], repmat (MPI_REQUEST_NULL, 1, 4));
  same (mpitb_held (), 0);
  same (a, other + 10);
  same (b, [other, 5]);
end
"""


def test_nonblocking_messages_and_all_ways_to_wait(mpitb):
    mpitb.passes(WAYS_TO_WAIT)


def test_what_happens_to_a_variable_that_changes_while_a_receive_is_under_way(mpitb):
    mpitb.passes(
        """
        function request = start (other, C)
          hidden = [1 2 3];
          [info, request] = MPI_Irecv (hidden, other, 0, C);
        end
        other = 1 - rank;
        # Assigned: the message is put into it at the end.
        x = [0 0 0];
        [info, r] = MPI_Irecv (x, other, 0, C);
        x = "something else";
        MPI_Send ([1 2 3], other, 0, C);
        MPI_Wait (r);
        same (x, [1 2 3]);
        # An element assigned: the same.
        [info, r] = MPI_Irecv (x, other, 0, C);
        x(2) = 50;
        MPI_Send ([4 5 6], other, 0, C);
        MPI_Wait (r);
        same (x, [4 5 6]);
        # Cleared: it stays so.
        [info, r] = MPI_Irecv (x, other, 0, C);
        clear x
        MPI_Send ([7 8 9], other, 0, C);
        MPI_Wait (r);
        same (exist ("x", "var"), 0);
        # Its function has returned.
        r = start (other, C);
        MPI_Send ([7 8 9], other, 0, C);
        MPI_Wait (r);
        same (exist ("hidden", "var"), 0);
        # A value under way to others does not change with the variable.
        s = ones (1, 200000);
        [info, r] = MPI_Isend (s, other, 0, C);
        s(:) = 2;
        t = zeros (1, 200000);
        MPI_Recv (t, other, 0, C);
        MPI_Wait (r);
        same (t, ones (1, 200000));
        """
    )


def test_persistent_requests_send_what_the_variable_holds_when_they_start(mpitb):
    mpitb.passes(
        """
        other = 1 - rank;
        x = [0 0]; y = [0 0];
        [info, s] = MPI_Send_init (x, other, 0, C);
        [info, r] = MPI_Recv_init (y, other, 0, C);
        for i = 1:4
          x = [rank, i];
          if i == 3, y(1) = 100; end
          MPI_Startall (s, r);
          MPI_Waitall (s, r);
          same (y, [other, i]);
        end
        x = [1 2 3];
        throws ("limosa:class", "MPI_Start (s)");
        MPI_Request_free (s);
        MPI_Request_free (r);
        same ([s, r], [MPI_REQUEST_NULL, MPI_REQUEST_NULL]);
        """
    )


def test_cancel_probe_and_the_sending_modes(mpitb):
    mpitb.passes(
        """
        x = 0;
        [info, r] = MPI_Irecv (x, 1 - rank, 77, C);
        MPI_Cancel (r);
        [info, stat] = MPI_Wait (r);
        [info, flag, stat] = MPI_Test_cancelled (stat);
        same (flag, 1);
        same (stat.can, 1);
        b = zeros (1, 1000);
        MPI_Buffer_attach (b);
        if rank == 0
          MPI_Bsend (1, 1, 1, C); MPI_Ssend (2, 1, 2, C);
          [info, r1] = MPI_Ibsend (3, 1, 3, C); [info, r2] = MPI_Issend (4, 1, 4, C);
          MPI_Waitall (r1, r2);
        else
          [info, stat] = MPI_Probe (0, 1, C);
          same (stat.cnt, 8);
          do [info, flag, stat] = MPI_Iprobe (MPI_ANY_SOURCE, MPI_ANY_TAG, C); until flag
          for tag = 1:4, MPI_Recv (x, 0, tag, C); same (x, tag); end
        end
        MPI_Barrier (C);
        if rank == 1
          [info, r] = MPI_Irecv (x, 0, 5, C);
          MPI_Barrier (C);
          MPI_Wait (r);
          same (x, 5);
          [info, message, stat] = MPI_Mprobe (0, 6, C);
          MPI_Mrecv (x, message);
          same (x, 6);
          same (message, MPI_MESSAGE_NULL);
        else
          MPI_Barrier (C);
          MPI_Rsend (5, 1, 5, C);
          MPI_Send (6, 1, 6, C);
        end
        MPI_Buffer_detach;
        y = rank; z = -1;
        [info, stat] = MPI_Sendrecv (y, 1 - rank, 0, z, 1 - rank, 0, C);
        same (z, 1 - rank);
        MPI_Sendrecv_replace (y, 1 - rank, 0, 1 - rank, 0, C);
        same (y, 1 - rank);
        v = 1:4; w = zeros (1, 4);
        [info, s] = MPI_Psend_init (v, 2, 1 - rank, 0, C, MPI_INFO_NULL);
        [info, r] = MPI_Precv_init (w, 2, 1 - rank, 0, C, MPI_INFO_NULL);
        MPI_Startall (s, r);
        MPI_Pready (0, s);
        MPI_Pready_list (1, s);
        MPI_Waitall (s, r);
        same (w, [1 2 3 4]);
        MPI_Request_free (s); MPI_Request_free (r);
        """
    )
