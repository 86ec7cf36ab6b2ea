"""MPITB's interface: collective operations, objects of MPI, windows, files and sessions."""

from __future__ import annotations

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "octave" / "examples" / "mpitb"

# --- collective operations --------------------------------------------------------------------------------------------


#: The variables that the rows below use, as they are before each call.
VARIABLES = """
m = rank; g = repmat (-1, 1, size); s = -1; v = repmat (rank, 1, rank + 1);
counts = 1:size; displs = cumsum ([0, 1:size-1]); gv = repmat (-1, 1, sum (counts)); gs = 1:numel (gv);
all = 10 * (0:size-1); one = repmat (1, 1, size); places = 0:size-1;
z = rank + 1i; zs = complex (0, 0); b = [0 0];
total = size * (size - 1) / 2; mine = displs(rank+1) + (1:rank+1);
"""

#: The call without communicator and request, what comes before it, and what holds afterwards.
COLLECTIVES = [
    ("MPI_Bcast (b, 1", "b = rank * [1 1]", "same (b, [1 1])"),
    ("MPI_Gather (m, g, 0", "", "if rank == 0, same (g, 0:size-1), end"),
    ("MPI_Gather (m, g, 0", "", "if rank != 0, same (g, repmat (-1, 1, size)), end"),
    ("MPI_Gatherv (v, gv, counts, displs, 0", "", "if rank == 0, same (gv, [0 1 1 2 2 2]), end"),
    ("MPI_Scatter (all, m, 0", "", "same (m, 10 * rank)"),
    ("MPI_Scatterv (gs, counts, displs, v, 0", "", "same (v, mine)"),
    ("MPI_Allgather (m, g", "", "same (g, 0:size-1)"),
    ("MPI_Allgatherv (v, gv, counts, displs", "", "same (gv, [0 1 1 2 2 2])"),
    ("MPI_Alltoall (all, g, 1", "all += rank", "same (g, 10 * rank + (0:size-1))"),
    ("MPI_Alltoallv (all, one, places, g, one, places", "all += rank", "same (g, 10 * rank + (0:size-1))"),
    ("MPI_Alltoallw (all, one, places, g, one, places", "all += rank", "same (g, 10 * rank + (0:size-1))"),
    ("MPI_Reduce (m, s, MPI_SUM, 1", "", "same (s, [-1, total, -1](rank + 1))"),
    ("MPI_Allreduce (m, s, MPI_SUM", "", "same (s, total)"),
    ("MPI_Allreduce (z, zs, MPI_SUM", "", "same (zs, total + 3i)"),
    ("MPI_Allreduce (z, zs, MPI_MAX", "", "same (zs, size - 1 + 1i)"),
    ("MPI_Scan (m, s, MPI_SUM", "", "same (s, rank * (rank + 1) / 2)"),
    ("MPI_Exscan (m, s, MPI_SUM", "", "same (s, [-1, 0, 1](rank + 1))"),
    ("MPI_Reduce_scatter (gs, v, counts, MPI_SUM", "", "same (v, size * mine)"),
    ("MPI_Reduce_scatter_block (all, s, MPI_SUM", "", "same (s, size * 10 * rank)"),
    ("MPI_Barrier (", "", "1"),
]


def collective(form: str) -> str:
    """A program that does each of the operations in that form."""
    lines = []
    for call, before, after in COLLECTIVES:
        name, arguments = call.split(" (", 1)
        arguments = f"{arguments}, C" if arguments else "C"
        lines += [VARIABLES, f"{before};"]
        if form == "blocking":
            lines.append(f"info = {name} ({arguments}); same (info, 0);")
        elif form == "nonblocking":
            lines.append(f"[info, r] = MPI_I{name[4:].lower()} ({arguments}); MPI_Wait (r);")
        else:
            lines.append(f"[info, r] = {name}_init ({arguments}, MPI_INFO_NULL); MPI_Start (r); MPI_Wait (r);")
            lines.append("MPI_Request_free (r);")
        lines.append(f"{after};")
    return "\n".join(lines)


@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
def test_collective_operations(mpitb, form):
    mpitb.passes(collective(form), n=3)


def test_in_place_and_arguments_that_are_not_significant(mpitb):
    mpitb.passes(
        """
        s = rank + 1;
        MPI_Allreduce (MPI_IN_PLACE, s, MPI_PROD, C);
        same (s, 6);
        g = [0 0 0]; g(rank+1) = rank;
        MPI_Allgather (MPI_IN_PLACE, g, C);
        same (g, [0 1 2]);
        if rank == 0
          g = [5 0 0];
          MPI_Gather (MPI_IN_PLACE, g, 0, C);
          same (g, [5 1 2]);
          MPI_Scatter (g, MPI_IN_PLACE, 0, C);
          MPI_Reduce (MPI_IN_PLACE, s, MPI_SUM, 0, C);
          same (s, 18);
        else
          MPI_Gather (rank, [], 0, C);
          x = 0;
          MPI_Scatter ([], x, 0, C);
          same (x, rank);
          MPI_Reduce (s, [], MPI_SUM, 0, C);
        end
        """,
        n=3,
    )


def test_reductions_with_functions_of_octave(mpitb):
    mpitb.passes(
        """
        function r = longer (a, b)
          r = a; r(abs (b) > abs (a)) = b(abs (b) > abs (a));
        end
        [info, op] = MPI_Op_create ("longer", 1);
        x = [rank, -rank]; y = [0 0];
        MPI_Allreduce (x, y, op, C);
        same (y, [2 -2]);
        z = (rank + 1) * 1i; w = complex (0, 0);
        [info, product] = MPI_Op_create (@(a, b) a .* b, 1);
        MPI_Allreduce (z, w, product, C);
        same (real (w), 0);
        same (imag (w), -6);
        throws ("limosa:arg", "[info, r] = MPI_Iallreduce (x, y, op, C)");
        [info, wrong] = MPI_Op_create (@(a, b) "text", 1);
        throws ("limosa:class", "MPI_Reduce_local (x, y, wrong)");
        [info, fails] = MPI_Op_create (@(a, b) error ("mine:id", "no"), 1);
        throws ("mine:id", "MPI_Reduce_local (x, y, fails)");
        MPI_Op_free (op); MPI_Op_free (product); MPI_Op_free (wrong); MPI_Op_free (fails);
        same (op, MPI_OP_NULL);
        for i = 1:200                          # operations can be made and freed again and again
          [info, op] = MPI_Op_create (@plus, 1);
          same (info, 0);
          MPI_Op_free (op);
        end
        """,
        n=3,
    )


# --- communicators, groups, topologies, attributes, errors, info ------------------------------------------------------


def test_communicators_and_groups(mpitb):
    mpitb.passes(
        """
        [info, dup] = MPI_Comm_dup (C);
        [info, result] = MPI_Comm_compare (C, dup);
        same (result, MPI_CONGRUENT);
        [info, half] = MPI_Comm_split (C, mod (rank, 2), -rank);
        [info, n] = MPI_Comm_size (half);
        same (n, 2);
        [info, g] = MPI_Comm_group (C);
        [info, g2] = MPI_Group_incl (g, [3 1]);
        [info, r] = MPI_Group_translate_ranks (g2, [0 1], g);
        same (r, [3 1]);
        [info, g3] = MPI_Group_range_incl (g, [0 2 2; 3 3 1]);
        [info, n] = MPI_Group_size (g3);
        same (n, 3);
        [info, r] = MPI_Group_translate_ranks (g3, 0:2, g);
        same (r, [0 2 3]);
        [info, g4] = MPI_Group_union (g2, g3);
        [info, n] = MPI_Group_size (g4);
        same (n, 4);
        [info, new] = MPI_Comm_create (C, g2);
        same (new == MPI_COMM_NULL, ! any (rank == [1 3]));
        if new != MPI_COMM_NULL, MPI_Comm_free (new); end
        leader = [1 0](mod (rank, 2) + 1);
        [info, inter] = MPI_Intercomm_create (half, 0, C, [3 2](mod (rank, 2) + 1), 9);
        [info, flag] = MPI_Comm_test_inter (inter);
        same (flag, 1);
        [info, n] = MPI_Comm_remote_size (inter);
        same (n, 2);
        [info, merged] = MPI_Intercomm_merge (inter, mod (rank, 2));
        [info, n] = MPI_Comm_size (merged);
        same (n, 4);
        [info, idup, request] = MPI_Comm_idup (C);
        MPI_Wait (request);
        MPI_Barrier (idup);
        for name = {"dup", "half", "inter", "merged", "idup"}
          eval (["MPI_Comm_free (" name{1} "); same (" name{1} ", MPI_COMM_NULL)"]);
        end
        for name = {"g", "g2", "g3", "g4"}
          eval (["MPI_Group_free (" name{1} "); same (" name{1} ", MPI_GROUP_NULL)"]);
        end
        MPI_Comm_set_name (C, "everyone");
        [info, name] = MPI_Comm_get_name (C);
        same (name, "everyone");
        """,
        n=4,
    )


def test_topologies_and_neighbours(mpitb):
    mpitb.passes(
        """
        function r = ifelse (c, a, b)
          if c, r = a; else r = b; end
        end
        [info, dims] = MPI_Dims_create (4, 2);
        same (dims, [2 2]);
        [info, cart] = MPI_Cart_create (C, dims, [1 0], 0);
        [info, d, p, c] = MPI_Cart_get (cart);
        same ({d, p}, {[2 2], [1 0]});
        [info, r] = MPI_Cart_rank (cart, c);
        [info, c2] = MPI_Cart_coords (cart, r);
        same (c, c2);
        [info, from, to] = MPI_Cart_shift (cart, 1, 1);
        same (to, ifelse (c(2) == 1, MPI_PROC_NULL, rank + 1));
        [info, row] = MPI_Cart_sub (cart, [0 1]);
        [info, n] = MPI_Comm_size (row);
        same (n, 2);
        [info, n] = MPI_Cartdim_get (cart);
        same (n, 2);
        [info, kind] = MPI_Topo_test (cart);
        same (kind, MPI_CART);
        got = repmat (-1, 1, 4);
        MPI_Neighbor_allgather (rank, got, cart);
        same (got(1:2), mod (rank + 2, 4) * [1 1]);
        [info, graph] = MPI_Graph_create (C, [1 2 3 4], [1 2 3 0], 0);
        [info, nodes, edges] = MPI_Graphdims_get (graph);
        same ([nodes, edges], [4 4]);
        [info, index, edges] = MPI_Graph_get (graph);
        same (edges, [1 2 3 0]);
        [info, n] = MPI_Graph_neighbors (graph, 3);
        same (n, 0);
        before = mod (rank - [1 2], 4);
        after = mod (rank + [1 2], 4);
        [info, ring] = MPI_Dist_graph_create_adjacent (C, before, MPI_UNWEIGHTED, after, ...
                                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0);
        x = rank * [10 20] + 1; y = [0 0];
        wanted = before .* [10 20] + 1;
        MPI_Neighbor_alltoall (x, y, ring);
        same (y, wanted);
        [info, r] = MPI_Ineighbor_alltoallv (x, [1 1], [0 1], y, [1 1], [1 0], ring);
        MPI_Wait (r);
        same (y, fliplr (wanted));
        MPI_Neighbor_alltoallw (x, [1 1], [0 1], y, [1 1], [0 1], ring);
        same (y, wanted);
        [info, sources, weights, destinations] = MPI_Dist_graph_neighbors (ring);
        same (destinations, after);
        MPI_Comm_free (cart); MPI_Comm_free (row); MPI_Comm_free (graph); MPI_Comm_free (ring);
        """,
        n=4,
    )


def test_attributes_are_octave_values(mpitb):
    mpitb.passes(
        """
        function [info, value, flag] = copy (comm, keyval, extra, value)
          value.copies += extra;
          [info, flag] = deal (0, 1);
        end
        function info = forget (comm, keyval, value, extra)
          global deleted
          deleted(end+1) = value.copies;
          info = 0;
        end
        global deleted
        deleted = [];
        [info, kv] = MPI_Keyval_create ("copy", "forget", 10);
        v.copies = 1;
        MPI_Attr_put (C, kv, v);
        [info, dup] = MPI_Comm_dup (C);
        [info, got, flag] = MPI_Attr_get (dup, kv);
        same (flag, 1);
        same (got.copies, 11);
        MPI_Comm_free (dup);
        same (deleted, 11);
        MPI_Attr_delete (C, kv);
        same (deleted, [11 1]);
        [info, got, flag] = MPI_Attr_get (C, kv);
        same (flag, 0);
        MPI_Keyval_free (kv);
        same (kv, MPI_KEYVAL_INVALID);
        [info, plain] = MPI_Keyval_create (MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN);
        MPI_Attr_put (C, plain, {1, "two"});
        [info, got] = MPI_Attr_get (C, plain);
        same (got, {1, "two"});
        [info, got, flag] = MPI_Attr_get (C, MPI_TAG_UB);
        same (flag, 1);
        if got < 32767, error ("TAG_UB is %d", got); end
        throws ("limosa:keyval", "MPI_Attr_put (C, MPI_TAG_UB, 1)");
        """
    )


def test_error_handlers(mpitb):
    mpitb.passes(
        """
        MPI_Errhandler_set (C, MPI_ERRORS_RETURN);
        info = MPI_Send (1, 1000, 0, C);
        [dummy, class] = MPI_Error_class (info);
        same (class, MPI_ERR_RANK);
        [dummy, text] = MPI_Error_string (info);
        if isempty (text), error ("no text"); end
        global seen
        seen = 0;
        [info, eh] = MPI_Errhandler_create ("global seen; seen += 1;");
        MPI_Errhandler_set (C, eh);
        info = MPI_Send (1, 1000, 0, C);
        same (seen, 1);
        [info, eh2] = MPI_Comm_create_errhandler (@(comm, code) error ("mine:rank", "code %d", code));
        MPI_Comm_set_errhandler (C, eh2);
        throws ("mine:rank", "MPI_Send (1, 1000, 0, C)");
        MPI_Errhandler_free (eh);
        same (eh, MPI_ERRHANDLER_NULL);
        """,
        n=1,
        is_alone=True,
    )


def test_an_error_of_mpi_ends_the_job_and_names_the_rank(mpitb):
    outcome = mpitb.code("if rank == 1, MPI_Send (1, 1000, 0, C); end; MPI_Barrier (C);", succeeds=False)
    assert outcome.code != 0
    assert "MPI_Send" in outcome.err
    assert "rank 1" in outcome.err


def test_an_uncaught_error_ends_the_job_and_names_the_rank(mpitb):
    outcome = mpitb.code('if rank == 1, error ("mine:id", "out of luck"); end; MPI_Barrier (C);', succeeds=False)
    assert outcome.code != 0
    assert "out of luck" in outcome.err
    assert "rank 1" in outcome.err


def test_info_objects(mpitb):
    mpitb.passes(
        """
        [info, o] = MPI_Info_create;
        MPI_Info_set (o, "file", "a.out");
        MPI_Info_set (o, "wdir", "/tmp");
        [info, n] = MPI_Info_get_nkeys (o);
        same (n, 2);
        [info, flag, value] = MPI_Info_get (o, "wdir");
        same ({flag, value}, {1, "/tmp"});
        [info, flag, value] = MPI_Info_get (o, "missing");
        same (flag, 0);
        [info, key] = MPI_Info_get_nthkey (o, 0);
        same (key, "file");
        [info, flag, length] = MPI_Info_get_valuelen (o, "wdir");
        same (length, 4);
        [info, p] = MPI_Info_dup (o);
        MPI_Info_delete (o, "wdir");
        MPI_Info_free (o);
        same (o, MPI_INFO_NULL);
        [info, value, flag] = MPI_Info_get_string (p, "wdir");
        same ({value, flag}, {"/tmp", 1});
        MPI_Info_free (p);
        """,
        n=1,
    )


def test_environment_and_versions(mpitb):
    mpitb.passes(
        """
        [info, flag] = MPI_Initialized; same (flag, 1);
        [info, flag] = MPI_Finalized; same (flag, 0);
        [info, name] = MPI_Get_processor_name;
        if isempty (name), error ("no name"); end
        [info, version, subversion] = MPI_Get_version;
        same (version, 5);
        t = MPI_Wtime;
        if MPI_Wtime < t || MPI_Wtick <= 0, error ("clock"); end
        x = 1;
        [info, address] = MPI_Address (x);
        if address <= 0, error ("address"); end
        same (MPI_ERR_TRUNCATE, 15);
        same (class (MPI_COMM_WORLD), "uint64");
        same ([MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL] < 0, [true true true]);
        """,
        n=1,
    )


def test_packing_takes_names_and_values_of_any_class(mpitb):
    mpitb.passes(
        """
        a = {1, "two", struct("x", 3)}; s = sparse ([1 0 2]); z = 1i; f = @(x) x + 1;
        [info, n1] = MPI_Pack_size (a, C);
        [info, n2] = MPI_Pack_size (s, C);
        buf = blanks (n1 + n2 + 500);
        pos = 0;
        MPI_Pack (a, buf, pos, C);
        same (pos, n1);
        MPI_Pack (s, buf, pos, C);
        same (pos, n1 + n2);
        MPI_Pack (z, buf, pos, C);
        MPI_Pack (f, buf, pos, C);
        if rank == 0
          MPI_Send (buf, 1, 0, C);
        else
          buf(:) = " ";
          MPI_Recv (buf, 0, 0, C);
          wanted = {a, s, z};
          clear a s z f
          pos = 0;
          [info, names] = MPI_Unpack (buf, pos, C);
          same (names, {"a", "s", "z", "f"});
          same ({a, s, z}, wanted);
          same (f (1), 2);
          [info, names] = MPI_Unpack (buf, 0, C, "other", "more");
          same ({other, more}, wanted(1:2));
          throws ("limosa:damaged", "MPI_Unpack (buf, 3, C)");
          throws ("limosa:damaged", "MPI_Unpack (buf, 1e6, C)");
        end
        small = blanks (10);
        pos = 0;
        throws ("limosa:size", "MPI_Pack (rank, small, pos, C)");
        """
    )


# --- the rest of MPI --------------------------------------------------------------------------------------------------


def test_windows_on_variables(mpitb):
    mpitb.passes(
        """
        w = rank * ones (1, 4);
        [info, win] = MPI_Win_create (w, 8, MPI_INFO_NULL, C);
        MPI_Win_fence (0, win);
        MPI_Put (rank + 100, 1 - rank, 2, win);
        MPI_Win_fence (0, win);
        same (w, [rank, rank, 101 - rank, rank]);
        got = zeros (1, 4);
        MPI_Get (got, 1 - rank, 0, win);
        MPI_Win_fence (0, win);
        same (got, [1 - rank, 1 - rank, rank + 100, 1 - rank]);
        MPI_Win_lock (MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Accumulate ([1 1], 0, 0, MPI_SUM, win);
        MPI_Win_unlock (0, win);
        MPI_Win_lock_all (0, win);
        old = 0;
        MPI_Fetch_and_op (5, old, 1, 3, MPI_SUM, win);
        MPI_Win_flush (1, win);
        if old != 1 && old != 6, error ("got %d", old); end
        [info, r] = MPI_Rget (got, 0, 0, win);
        MPI_Wait (r);
        MPI_Win_unlock_all (win);
        MPI_Barrier (C);
        if rank == 0, same (w(1:2), [2 2]); else same (w(4), 11); end
        [info, bytes, flag] = MPI_Win_get_attr (win, MPI_WIN_SIZE);
        same (bytes, 32);
        MPI_Win_free (win);
        same (win, MPI_WIN_NULL);
        """
    )


def test_files(mpitb):
    mpitb.passes(
        """
        name = "data";
        [info, fh] = MPI_File_open (C, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL);
        x = rank * 10 + (1:3);
        [info, stat] = MPI_File_write_at_all (fh, rank * 24, x);
        same (stat.cnt, 24);
        MPI_File_sync (fh); MPI_Barrier (C); MPI_File_sync (fh);
        [info, bytes] = MPI_File_get_size (fh);
        same (bytes, 48);
        y = zeros (1, 6);
        MPI_File_read_at (fh, 0, y);
        same (y, [1 2 3 11 12 13]);
        [info, r] = MPI_File_iread_at (fh, 24, x);
        MPI_Wait (r);
        same (x, [11 12 13]);
        [info, filetype] = MPI_Type_vector (3, 1, 2, MPI_DOUBLE);
        MPI_Type_commit (filetype);
        MPI_File_set_view (fh, 8 * rank, MPI_DOUBLE, filetype, "native", MPI_INFO_NULL);
        MPI_File_read_all_begin (fh, x);
        [info, stat] = MPI_File_read_all_end (fh, x);
        same (x, y(1+rank:2:end));
        MPI_Type_free (filetype);
        MPI_File_close (fh);
        same (fh, MPI_FILE_NULL);
        MPI_Barrier (C);
        """
    )


def test_sessions_and_variables_of_the_implementation(mpitb):
    mpitb.passes(
        """
        [info, s] = MPI_Session_init (MPI_INFO_NULL, MPI_ERRORS_RETURN);
        [info, n] = MPI_Session_get_num_psets (s, MPI_INFO_NULL);
        names = {};
        for i = 1:n, [info, names{i}] = MPI_Session_get_nth_pset (s, MPI_INFO_NULL, i - 1); end
        same (any (strcmp (names, "mpi://WORLD")), true);
        [info, g] = MPI_Group_from_session_pset (s, "mpi://WORLD");
        [info, c] = MPI_Comm_create_from_group (g, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN);
        [info, n] = MPI_Comm_size (c);
        same (n, size);
        MPI_Comm_free (c); MPI_Group_free (g); MPI_Session_finalize (s);
        [info, provided] = MPI_T_init_thread (MPI_THREAD_SINGLE);
        [info, n] = MPI_T_cvar_get_num;
        for i = 0:n-1
          [info, name, verbosity, type, enum, text, bind] = MPI_T_cvar_get_info (i);
          same (isempty (name), false);
          if bind == MPI_T_BIND_NO_OBJECT
            [info, h, count] = MPI_T_cvar_handle_alloc (i, []);
            [info, value] = MPI_T_cvar_read (h);
            same (info, 0);
            MPI_T_cvar_handle_free (h);
          end
        end
        [info, session] = MPI_T_pvar_session_create;
        MPI_T_pvar_session_free (session);
        MPI_T_finalize;
        """
    )


def test_ports(mpitb):
    mpitb.passes(
        """
        [info, half] = MPI_Comm_split (C, rank, 0);
        if rank == 0
          [info, port] = MPI_Open_port (MPI_INFO_NULL);
          MPI_Send (length (port), 1, 0, C);
          MPI_Send (port, 1, 1, C);
          [info, inter] = MPI_Comm_accept (port, MPI_INFO_NULL, 0, half);
          MPI_Close_port (port);
        else
          n = 0;
          MPI_Recv (n, 0, 0, C);
          port = blanks (n);
          MPI_Recv (port, 0, 1, C);
          [info, inter] = MPI_Comm_connect (port, MPI_INFO_NULL, 0, half);
        end
        x = -1;
        MPI_Sendrecv (rank, 0, 0, x, 0, 0, inter);
        same (x, 1 - rank);
        MPI_Comm_disconnect (inter);
        same (inter, MPI_COMM_NULL);
        MPI_Comm_free (half);
        """
    )
