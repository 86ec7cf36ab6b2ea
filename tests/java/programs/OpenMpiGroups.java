import java.nio.IntBuffer;
import java.util.Arrays;
import mpi.*;

/** Open MPI's collective operations between neighbours of a topology, and between two groups. */
public class OpenMpiGroups {
    static Intracomm world;
    static int rank;
    static int size;

    /** A ring, in which the one before and the one behind may be the same process, or the caller. */
    static void ring() throws MPIException {
        CartComm ring = world.createCart(new int[] {size}, new boolean[] {true}, false);
        int before = (rank + size - 1) % size;
        int behind = (rank + 1) % size;
        int[] got = new int[2];
        ring.neighborAllGather(new int[] {rank}, 1, MPI.INT, got, 1, MPI.INT);
        Check.same(new int[] {before, behind}, got, "neighborAllGather");
        Request first = ring.iNeighborAllToAll(new int[] {10 * rank, 10 * rank + 1}, 1, MPI.INT, got, 1, MPI.INT);
        int[] other = new int[2];
        Request second = ring.iNeighborAllGather(new int[] {-rank}, 1, MPI.INT, other, 1, MPI.INT);
        Request.waitAll(new Request[] {second, first});
        Check.same(new int[] {10 * before + 1, 10 * behind}, got, "iNeighborAllToAll");
        Check.same(new int[] {-before, -behind}, other, "iNeighborAllGather");
        Object[] texts = new Object[2];
        Request objects = ring.iNeighborAllToAll(
                new Object[] {"to " + before, "to " + behind}, 1, MPI.OBJECT, texts, 1, MPI.OBJECT);
        while (!objects.test()) {
            Thread.onSpinWait();
        }
        Check.same(new Object[] {"to " + rank, "to " + rank}, texts, "neighborAllToAll of objects");
        double[] blocks = new double[6];
        int[] counts = {1, 2};
        Request vectors = ring.iNeighborAllToAllv(
                new double[] {rank, rank + 0.5, 9}, new int[] {2, 1}, new int[] {0, 2}, MPI.DOUBLE,
                blocks, counts, new int[] {0, 3}, MPI.DOUBLE);
        Check.same(0, Request.waitAny(new Request[] {vectors}), "waitAny");
        Check.same(new double[] {9, 0, 0, behind, behind + 0.5, 0}, blocks, "iNeighborAllToAllv");
        ring.neighborAllGatherv(
                new int[] {rank, 5}, 2, MPI.INT, other = new int[5], new int[] {2, 2}, new int[] {3, 0}, MPI.INT);
        Check.same(new int[] {behind, 5, 0, before, 5}, other, "neighborAllGatherv");
        CartComm copy = ring.clone();
        copy.neighborAllGather(new int[] {rank}, 1, MPI.INT, got, 1, MPI.INT);
        Check.same(new int[] {before, behind}, got, "in a copy");
        copy.free();
        ring.free();
    }

    /** Blocks beyond the edge stay as they are. */
    static void grid() throws MPIException {
        CartComm line = world.createCart(new int[] {1, size}, new boolean[] {false, false}, false);
        int[] got = {-1, -1, -1, -1};
        line.neighborAllGather(new int[] {rank}, 1, MPI.INT, got, 1, MPI.INT);
        int[] expected = {-1, -1, rank == 0 ? -1 : rank - 1, rank == size - 1 ? -1 : rank + 1};
        Check.same(expected, got, "neighborAllGather in a line");
        CartComm part = line.sub(new boolean[] {false, true});
        int[] two = {-1, -1};
        part.neighborAllToAll(new int[] {10 + rank, 20 + rank}, 1, MPI.INT, two, 1, MPI.INT);
        Check.same(new int[] {rank == 0 ? -1 : 19 + rank, rank == size - 1 ? -1 : 11 + rank}, two, "in a part");
        Check.fails(
                () -> world.neighborAllGather(new int[1], 1, MPI.INT, new int[1], 1, MPI.INT), "neighborAllGather",
                "no topology");
        Check.fails(() -> part.neighborAllGather(new int[1], 1, MPI.INT, new int[1], 1, MPI.INT), "buffer has 1");
        Check.fails(
                () -> part.neighborAllGatherv(new int[1], 1, MPI.INT, two, new int[1], new int[2], MPI.INT),
                "1 entries for 2 neighbours");
        Check.fails(
                () -> part.iNeighborAllGather(new int[1], 1, MPI.INT, two, 1, MPI.INT).cancel(), "cannot be cancelled");
    }

    /** Rank 0 is beside all others. */
    static void star() throws MPIException {
        int[] index = new int[size];
        int[] edges = new int[2 * (size - 1)];
        for (int r = 0; r < size; r++) {
            index[r] = size - 1 + r;
            if (r > 0) {
                edges[r - 1] = r;
            }
        }
        GraphComm star = world.createGraph(index, edges, false);
        int[] got = new int[rank == 0 ? size - 1 : 1];
        star.neighborAllGather(new int[] {rank + 100}, 1, MPI.INT, got, 1, MPI.INT);
        int[] expected = {100};
        if (rank == 0) {
            expected = new int[size - 1];
            Arrays.setAll(expected, i -> 101 + i);
        }
        Check.same(expected, got, "neighborAllGather in a star");
        star.free();
    }

    /** Even and odd ranks; what one group has goes to its counterpart. */
    static void twoGroups() throws MPIException {
        Intracomm half = world.split(rank % 2, rank);
        Intercomm both = world.createIntercomm(half, 0, 1 - rank % 2, 3);
        int remote = both.getRemoteSize();
        boolean isEven = rank % 2 == 0;
        int root = isEven ? half.getRank() == 0 ? MPI.ROOT : MPI.PROC_NULL : 0;
        both.barrier();
        int[] values = isEven && half.getRank() == 0 ? new int[] {7, 8} : new int[2];
        both.bcast(values, 2, MPI.INT, root);
        Check.same(!isEven || root == MPI.ROOT ? new int[] {7, 8} : new int[2], values, "bcast");
        Object[] text = {root == MPI.ROOT ? "text" : null};
        both.bcast(text, 1, MPI.OBJECT, root);
        Check.same(!isEven || root == MPI.ROOT ? "text" : null, text[0], "bcast of an object");
        int[] theirs = new int[remote];
        Arrays.setAll(theirs, i -> 2 * i + 1 - rank % 2);
        int[] got = new int[remote];
        both.gather(new int[] {rank}, 1, MPI.INT, root == MPI.ROOT ? got : null, 1, MPI.INT, root);
        Check.same(root == MPI.ROOT ? theirs : new int[remote], got, "gather");
        int[] mine = {-1};
        both.scatter(root == MPI.ROOT ? theirs : null, 1, MPI.INT, mine, 1, MPI.INT, root);
        Check.same(isEven ? -1 : rank, mine[0], "scatter");
        both.allGather(new int[] {rank}, 1, MPI.INT, got, 1, MPI.INT);
        Check.same(theirs, got, "allGather");
        int[] sent = new int[remote];
        Arrays.setAll(sent, i -> 100 * rank + i);
        both.allToAll(sent, 1, MPI.INT, got, 1, MPI.INT);
        for (int i = 0; i < remote; i++) {
            Check.same(100 * theirs[i] + half.getRank(), got[i], "allToAll");
        }
        int sum = Arrays.stream(theirs).sum();
        double[] result = {-1};
        both.reduce(new double[] {rank}, result, 1, MPI.DOUBLE, MPI.SUM, root);
        Check.same(root == MPI.ROOT ? (double) sum : -1.0, result[0], "reduce");
        both.allReduce(new double[] {rank}, result, 1, MPI.DOUBLE, MPI.SUM);
        Check.same((double) sum, result[0], "allReduce");
        Op join = new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                ((Object[]) inOut)[0] = "" + ((Object[]) in)[0] + ((Object[]) inOut)[0];
            }
        }, false);
        both.allReduce(new Object[] {"" + rank}, text, 1, MPI.OBJECT, join);
        StringBuilder expected = new StringBuilder();
        Arrays.stream(theirs).forEach(expected::append);
        Check.same(expected.toString(), text[0], "allReduce in the order of ranks");
        dealt(both, half.getRank(), half.getSize(), remote, sum);
        Check.fails(() -> both.bcast(values, 2, MPI.INT, remote), "bcast", "no root " + remote, "MPI.ROOT");
        Check.fails(() -> both.iBarrier(), "iBarrier", "blocking operations only");
        Check.fails(
                () -> both.allReduce(values, IntBuffer.wrap(values).asReadOnlyBuffer(), 1, MPI.INT, MPI.SUM),
                "allReduce: the buffer is read-only");
        both.free();
    }

    /** Each group has as many items in all. */
    static void dealt(Intercomm both, int me, int local, int remote, int sum) throws MPIException {
        int[] counts = new int[local];
        Arrays.fill(counts, remote);
        int[] items = new int[local * remote];
        Arrays.setAll(items, i -> rank + i);
        int[] part = new int[remote];
        both.reduceScatter(items, part, counts, MPI.INT, MPI.SUM);
        for (int i = 0; i < remote; i++) {
            Check.same(sum + remote * (me * remote + i), part[i], "reduceScatter");
        }
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.getRank();
        size = world.getSize();
        ring();
        grid();
        star();
        if (size > 1) {
            twoGroups();
        }
        Check.end();
    }
}
