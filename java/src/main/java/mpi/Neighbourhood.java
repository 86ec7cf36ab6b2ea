package mpi;

import java.util.Arrays;

/**
 * Messages between the processes of a topology and their neighbours (MPI-5, section 8.6), on a communicator of their
 * own. The topologies are known to Java only, so these are made of messages.
 *
 * @param messages what carries them
 * @param ranks the neighbours; {@code PROC_NULL} beyond an edge
 * @param sent the tag of what is sent to each
 * @param received the tag of what is received from each
 */
record Neighbourhood(Intracomm messages, int[] ranks, int[] sent, int[] received) {
    /** Of a grid: in each dimension the one before and the one behind. */
    static Neighbourhood of(Cartcomm grid, Intracomm messages) {
        int dims = grid.Get().dims.length;
        int[] ranks = new int[2 * dims];
        int[] sent = new int[2 * dims];
        int[] received = new int[2 * dims];
        for (int i = 0; i < dims; i++) {
            ShiftParms beside = grid.Shift(i, 1);
            ranks[2 * i] = beside.rank_source;
            ranks[2 * i + 1] = beside.rank_dest;
            // What goes to the one before comes from the one behind, also if both are the same process.
            sent[2 * i] = received[2 * i + 1] = 2 * i;
            sent[2 * i + 1] = received[2 * i] = 2 * i + 1;
        }
        return new Neighbourhood(messages, ranks, sent, received);
    }

    /** Of a graph: in the order of its edges. */
    static Neighbourhood of(Graphcomm graph, Intracomm messages) {
        int[] ranks = graph.Neighbours(graph.Rank());
        return new Neighbourhood(messages, ranks, new int[ranks.length], new int[ranks.length]);
    }

    /** The same count for each neighbour. */
    int[] same(int count) {
        int[] counts = new int[ranks.length];
        Arrays.fill(counts, count);
        return counts;
    }

    /** Consecutive places. */
    int[] steps(int count) {
        int[] places = new int[ranks.length];
        Arrays.setAll(places, i -> Math.multiplyExact(i, count));
        return places;
    }

    /** Starts to send a block to each neighbour, and to receive one from each. Displacements are in items. */
    Request start(
            String function, Object sendbuf, int[] sendcounts, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcounts, int[] rdispls, Datatype recvtype) {
        check(function, "sendcount", sendcounts);
        check(function, "sdispls", sdispls);
        check(function, "recvcount", recvcounts);
        check(function, "rdispls", rdispls);
        Layout.check(function, sendbuf, 0, 0, sendtype);
        Layout.checkWritable(function, recvbuf);
        Layout.check(function, recvbuf, 0, 0, recvtype);
        for (int i = 0; i < ranks.length; i++) {
            checkRoom(function, sendbuf, sdispls[i], sendcounts[i], sendtype);
            checkRoom(function, recvbuf, rdispls[i], recvcounts[i], recvtype);
        }
        Request[] requests = new Request[2 * ranks.length];
        for (int i = 0; i < ranks.length; i++) {
            requests[i] = messages.Irecv(
                    recvbuf, rdispls[i] * recvtype.extent(), recvcounts[i], recvtype, ranks[i], received[i]);
        }
        for (int i = 0; i < ranks.length; i++) {
            requests[ranks.length + i] = messages.Isend(
                    sendbuf, sdispls[i] * sendtype.extent(), sendcounts[i], sendtype, ranks[i], sent[i]);
        }
        return new Request(new Pending.OfSeveral(requests));
    }

    private void check(String function, String what, int[] values) {
        if (values == null || values.length < ranks.length) {
            throw Errors.count(function + ": " + what + " has " + (values == null ? 0 : values.length)
                    + " entries for " + ranks.length + " neighbours");
        }
    }

    private static void checkRoom(String function, Object buffer, int place, int count, Datatype type) {
        Layout.check(function, buffer, place * type.extent(), count, type);
        if (buffer != null) {
            Layout.checkRoom(function, buffer, place * type.extent(), count, type);
        }
    }
}
