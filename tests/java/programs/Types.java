import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;
import mpi.Status;

/** Derived datatypes, whose sizes are in elements, packing, and objects. */
public class Types {
    static Intracomm world;
    static int rank;
    static int size;

    static void sizes() {
        Check.same(1, MPI.INT.Size(), "size");
        Check.same(1, MPI.DOUBLE.Extent(), "extent");
        Datatype row = Datatype.Contiguous(4, MPI.INT);
        Check.same(4, row.Size(), "contiguous");
        Datatype column = Datatype.Vector(3, 2, 5, MPI.INT);
        Check.same(6, column.Size(), "vector");
        Check.same(12, column.Extent(), "vector");
        Check.same(24, Datatype.Vector(2, 1, 5, row).Extent(), "the stride is in items");
        Check.same(9, Datatype.Hvector(2, 1, 5, row).Extent(), "the stride is in elements");
        Datatype indexed = Datatype.Indexed(new int[] {1, 2}, new int[] {5, 1}, MPI.BYTE);
        Check.same(3, indexed.Size(), "indexed");
        Check.same(1, indexed.Lb(), "lower bound");
        Check.same(6, indexed.Ub(), "upper bound");
        Datatype set = Datatype.Struct(
                new int[] {1, 1}, new int[] {0, 97}, new Datatype[] {Datatype.Contiguous(4, MPI.INT), MPI.UB});
        Check.same(97, set.Extent(), "the upper bound that was set");
        Datatype below = Datatype.Struct(
                new int[] {1, 1}, new int[] {-3, 0}, new Datatype[] {MPI.LB, MPI.INT});
        Check.same(-3, below.Lb(), "the lower bound that was set");
        Check.same(4, below.Extent(), "the lower bound that was set");
        Check.fails(
                () -> Datatype.Struct(new int[] {1, 1}, new int[] {0, 1}, new Datatype[] {MPI.INT, MPI.LONG}),
                "different arrays");
        Check.fails(() -> Datatype.Contiguous(-1, MPI.INT), "negative");
    }

    /** Sends from this rank to itself. */
    static Status move(Object from, int offset, int count, Datatype sent, Object to, int at, int n, Datatype received) {
        Request request = world.Isend(from, offset, count, sent, rank, 4);
        Status status = world.Recv(to, at, n, received, rank, 4);
        request.Wait();
        return status;
    }

    static void derived() {
        int[] from = new int[20];
        Arrays.setAll(from, i -> i);
        Datatype column = Datatype.Vector(3, 1, 4, MPI.INT);
        column.Commit();
        int[] to = new int[6];
        Status status = move(from, 1, 2, column, to, 0, 6, MPI.INT);
        Check.same(new int[] {1, 5, 9, 10, 14, 18}, to, "two columns");
        Check.same(6, status.Get_count(MPI.INT), "count");
        Check.same(2, status.Get_count(column), "count of columns");
        int[] back = new int[20];
        status = move(to, 0, 5, MPI.INT, back, 1, 2, column);
        Check.same(MPI.UNDEFINED, status.Get_count(column), "no whole columns");
        Check.same(5, status.Get_elements(column), "elements");
        Check.same(new int[] {0, 1, 0, 0, 0, 5, 0, 0, 0, 9, 10, 0, 0, 0, 14, 0, 0, 0, 0, 0}, back, "scattered");
        Datatype mixed = Datatype.Indexed(new int[] {2, 1}, new int[] {3, 0}, MPI.BOOLEAN);
        boolean[] flags = new boolean[5];
        move(new boolean[] {true, false, false, true, false}, 0, 1, mixed, flags, 0, 3, MPI.BOOLEAN);
        Check.same(new boolean[] {true, false, true, false, false}, flags, "booleans");
        Datatype pairs = Datatype.Vector(2, 1, 2, MPI.OBJECT);
        Object[] objects = new Object[4];
        status = move(new Object[] {"a", "b", "c"}, 0, 1, pairs, objects, 1, 2, MPI.OBJECT);
        Check.same(new Object[] {null, "a", "c", null}, objects, "objects");
        Check.same(2, status.Get_count(MPI.OBJECT), "objects");
        Check.same(MPI.UNDEFINED, status.Get_elements(MPI.OBJECT), "objects have no elements");
    }

    static void packing() {
        byte[] packed = new byte[200];
        int position = world.Pack(new int[] {1, 2, 3}, 1, 2, MPI.INT, packed, 0);
        Check.same(world.Pack_size(2, MPI.INT), position, "position");
        position = world.Pack(new double[] {0.5}, 0, 1, MPI.DOUBLE, packed, position);
        position = world.Pack(new boolean[] {false, true}, 0, 2, MPI.BOOLEAN, packed, position);
        byte[] arrived = new byte[200];
        move(packed, 0, position, MPI.PACKED, arrived, 0, 200, MPI.PACKED);
        int[] ints = new int[3];
        double[] doubles = new double[1];
        boolean[] flags = new boolean[2];
        position = world.Unpack(arrived, 0, ints, 1, 2, MPI.INT);
        position = world.Unpack(arrived, position, doubles, 0, 1, MPI.DOUBLE);
        world.Unpack(arrived, position, flags, 0, 2, MPI.BOOLEAN);
        Check.same(new int[] {0, 2, 3}, ints, "ints");
        Check.same(0.5, doubles[0], "double");
        Check.same(new boolean[] {false, true}, flags, "booleans");
        Check.fails(() -> world.Pack(new int[100], 0, 100, MPI.INT, packed, 0), "Pack: 400 bytes");
        Check.fails(() -> world.Unpack(packed, 190, new int[9], 0, 9, MPI.INT), "Unpack: 36 bytes");
        Check.fails(() -> world.Pack(new Object[1], 0, 1, MPI.OBJECT, packed, 0), "objects cannot be packed");
    }

    record Point(int x, List<String> names) implements Serializable {}

    /** Long ones, with shared references, rows of matrices, records; in the order in which they were sent. */
    static void objects() {
        int next = (rank + 1) % size;
        int previous = (rank + size - 1) % size;
        double[][] rows = new double[3][20_000];
        rows[1][7] = rank;
        rows[2] = rows[0];
        Object[] things = {new Point(rank, List.of("a", "b")), null, Map.of("k", 1), rows};
        Request first = world.Isend(things, 0, 4, MPI.OBJECT, next, 1);
        Request second = world.Isend(rows, 0, 3, MPI.OBJECT, next, 1);
        Object[] got = new Object[4];
        double[][] matrix = new double[5][1];
        double[] old = matrix[1];
        Status status = world.Recv(got, 0, 4, MPI.OBJECT, MPI.ANY_SOURCE, MPI.ANY_TAG);
        Check.same(previous, status.source, "source");
        Check.same(4, status.Get_count(MPI.OBJECT), "objects");
        Check.same(new Point(previous, List.of("a", "b")), got[0], "record");
        Check.that(got[1] == null, "null");
        Check.same((double) previous, ((double[][]) got[3])[1][7], "matrix");
        Check.that(((double[][]) got[3])[0] == ((double[][]) got[3])[2], "shared rows");
        status = world.Recv(matrix, 1, 4, MPI.OBJECT, previous, 1);
        Check.same(3, status.Get_count(MPI.OBJECT), "fewer than posted");
        Check.same((double) previous, matrix[2][7], "row");
        Check.that(matrix[1] != old && matrix[4].length == 1, "fresh rows");
        first.Wait();
        second.Wait();
        // No rank begins the next part while a second one receives from any source.
        world.Barrier();
    }

    /** Both have posted a receive and send: no rank waits for its partner's call of Wait. */
    static void postedBeforeLongSends() {
        Object[] sent = {new byte[5_000_000]};
        Object[] received = new Object[1];
        Request request = world.Irecv(received, 0, 1, MPI.OBJECT, size - 1 - rank, 2);
        world.Send(sent, 0, 1, MPI.OBJECT, size - 1 - rank, 2);
        world.Barrier();
        request.Wait();
        Check.same(5_000_000, ((byte[]) received[0]).length, "a long object");
        request = world.Irecv(received, 0, 1, MPI.OBJECT, size - 1 - rank, 2);
        world.Ssend(sent, 0, 1, MPI.OBJECT, size - 1 - rank, 2);
        world.Barrier();
        request.Wait();
    }

    public static void main(String[] args) {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        sizes();
        derived();
        packing();
        objects();
        postedBeforeLongSends();
        Check.end();
    }
}
