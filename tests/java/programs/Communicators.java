import java.util.Arrays;
import mpi.Cartcomm;
import mpi.CartParms;
import mpi.Comm;
import mpi.Graphcomm;
import mpi.Group;
import mpi.Intercomm;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;
import mpi.ShiftParms;

/** Groups, communicators and topologies. */
public class Communicators {
    static Intracomm world;
    static int rank;
    static int size;

    static void groups() {
        Group all = world.Group();
        Check.same(size, all.Size(), "size");
        Check.same(rank, all.Rank(), "rank");
        Group none = MPI.GROUP_EMPTY;
        Check.same(0, none.Size(), "empty");
        Check.same(MPI.UNDEFINED, none.Rank(), "empty");
        int[] falling = new int[size];
        for (int i = 0; i < size; i++) {
            falling[i] = size - 1 - i;
        }
        Group reversed = all.Incl(falling);
        Check.same(size - 1 - rank, reversed.Rank(), "rank in the other order");
        Check.same(size == 1 ? MPI.IDENT : MPI.SIMILAR, Group.Compare(all, reversed), "other order");
        Check.same(MPI.IDENT, Group.Compare(all, world.Group()), "the same");
        Check.same(MPI.UNEQUAL, Group.Compare(all, none), "unequal");
        Group first = all.Incl(new int[] {0});
        Group rest = all.Excl(new int[] {0});
        Check.same(size - 1, rest.Size(), "rest");
        Check.same(MPI.IDENT, Group.Compare(all, Group.Union(first, rest)), "union");
        Check.same(0, Group.Intersection(first, rest).Size(), "intersection");
        Check.same(MPI.IDENT, Group.Compare(rest, Group.Difference(all, first)), "difference");
        Check.same(falling, Group.Translate_ranks(all, falling(size), reversed), "translated");
        Check.same(new int[] {MPI.UNDEFINED}, Group.Translate_ranks(first, new int[] {0}, rest), "not in it");
        Group even = all.Range_incl(new int[][] {{0, size - 1, 2}});
        Check.same((size + 1) / 2, even.Size(), "even ranks");
        Group odd = all.Range_excl(new int[][] {{0, size - 1, 2}});
        Check.same(size / 2, odd.Size(), "odd ranks");
        Check.same(MPI.IDENT, Group.Compare(reversed, all.Range_incl(new int[][] {{size - 1, 0, -1}})), "falling");
        Check.fails(() -> all.Incl(new int[] {size}), "Group.Incl", "no rank " + size);
        Check.fails(() -> all.Incl(new int[] {0, 0}), "twice");
        Check.fails(() -> all.Range_incl(new int[][] {{0, 0, 0}}), "stride");
        for (Group each : new Group[] {reversed, first, rest, even, odd}) {
            each.free();
        }
    }

    static int[] falling(int n) {
        int[] ranks = new int[n];
        for (int i = 0; i < n; i++) {
            ranks[i] = i;
        }
        return ranks;
    }

    static void communicators() {
        Check.same(MPI.IDENT, Comm.Compare(world, MPI.COMM_WORLD), "the same");
        Intracomm copy = (Intracomm) world.clone();
        Check.same(MPI.CONGRUENT, Comm.Compare(world, copy), "a copy");
        // A message of one does not arrive in its copy.
        int[] value = {7};
        Request request = copy.Irecv(value, 0, 1, MPI.INT, rank, 1);
        Request other = world.Isend(new int[] {8}, 0, 1, MPI.INT, rank, 1);
        Check.that(request.Test() == null, "another communicator");
        copy.Send(new int[] {9}, 0, 1, MPI.INT, rank, 1);
        request.Wait();
        Check.same(9, value[0], "its own message");
        world.Recv(value, 0, 1, MPI.INT, rank, 1);
        Check.same(8, value[0], "the other message");
        other.Wait();
        copy.Free();
        Check.that(copy.Is_null(), "freed");
        Check.fails(copy::Rank, "freed");
        Intracomm half = world.Split(rank % 2, -rank);
        Check.same((size + 1 - rank % 2) / 2, half.Size(), "half");
        Check.same((half.Size() - 1) - rank / 2, half.Rank(), "order by key");
        int[] sum = new int[1];
        half.Allreduce(new int[] {rank}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
        int expected = 0;
        for (int r = rank % 2; r < size; r += 2) {
            expected += r;
        }
        Check.same(expected, sum[0], "sum in the half");
        Intracomm one = world.Split(rank == 0 ? 3 : MPI.UNDEFINED, 0);
        Check.same(rank == 0, one != null, "left out");
        Intracomm firstOnly = world.Create(world.Group().Incl(new int[] {0}));
        Check.same(rank == 0, firstOnly != null, "left out");
        Check.that(!world.Test_inter(), "no inter-communicator");
        world.Attr_put(12, 5);
        Check.same(5, (int) world.Attr_get(12), "attribute");
        world.Attr_delete(12);
        Check.same(0, (int) world.Attr_get(12), "no attribute");
        Check.that(world.Attr_get(MPI.TAG_UB) >= 32767, "largest tag");
    }

    static void interCommunicators() {
        if (size < 2) {
            return;
        }
        Intracomm half = world.Split(rank % 2, rank);
        Intercomm both = world.Create_intercomm(half, 0, 1 - rank % 2, 3);
        Check.that(both.Test_inter(), "an inter-communicator");
        Check.same((size + rank % 2) / 2, both.Remote_size(), "the other half");
        Check.same(both.Remote_size(), both.Remote_group().Size(), "group of the other half");
        int partner = rank / 2;
        if (partner < both.Remote_size()) {
            Object[] received = new Object[1];
            both.Sendrecv(
                    new Object[] {"from " + rank}, 0, 1, MPI.OBJECT, partner, 1, received, 0, 1, MPI.OBJECT, partner, 1);
            Check.same("from " + (rank ^ 1), received[0], "a message to the other half");
        }
        Intracomm merged = both.Merge(rank % 2 == 1);
        Check.same(size, merged.Size(), "all");
        Check.same(rank % 2 == 0 ? rank / 2 : (size + 1) / 2 + rank / 2, merged.Rank(), "low ones first");
        Intercomm copy = (Intercomm) both.clone();
        Check.same(MPI.CONGRUENT, Comm.Compare(both, copy), "a copy");
        Check.fails(() -> both.Send(new int[1], 0, 1, MPI.INT, both.Remote_size(), 0), "no destination");
    }

    static void grids() {
        int[] dims = {0, 0};
        Cartcomm.Dims_create(size, dims);
        Check.that(dims[0] * dims[1] == size && dims[0] >= dims[1], "Dims_create: " + Arrays.toString(dims));
        int[] twelve = {0, 2, 0};
        Cartcomm.Dims_create(12, twelve);
        Check.same(new int[] {3, 2, 2}, twelve, "Dims_create");
        int[] many = {0, 0, 0};
        Cartcomm.Dims_create(64, many);
        Check.same(new int[] {4, 4, 4}, many, "Dims_create");
        Check.fails(() -> Cartcomm.Dims_create(7, new int[] {2, 0}), "7 processes");
        Cartcomm grid = world.Create_cart(dims, new boolean[] {true, false}, false);
        Check.same(MPI.CART, grid.Topo_test(), "topology");
        CartParms parms = grid.Get();
        Check.same(dims, parms.dims, "dims");
        Check.same(new boolean[] {true, false}, parms.periods, "periods");
        Check.same(new int[] {rank / dims[1], rank % dims[1]}, parms.coords, "coords");
        Check.same(rank, grid.Rank(parms.coords), "rank of coords");
        Check.same(rank, grid.Rank(new int[] {parms.coords[0] + dims[0], parms.coords[1]}), "periodic");
        Check.fails(() -> grid.Rank(new int[] {0, dims[1]}), "not periodic");
        ShiftParms down = grid.Shift(0, 1);
        Check.same(grid.Rank(new int[] {parms.coords[0] + 1, parms.coords[1]}), down.rank_dest, "below");
        ShiftParms right = grid.Shift(1, 1);
        Check.same(parms.coords[1] == dims[1] - 1, right.rank_dest == MPI.PROC_NULL, "edge");
        Check.same(parms.coords[1] == 0, right.rank_source == MPI.PROC_NULL, "edge");
        int[] got = {-1};
        grid.Sendrecv(new int[] {rank}, 0, 1, MPI.INT, right.rank_dest, 0, got, 0, 1, MPI.INT, right.rank_source, 0);
        Check.same(parms.coords[1] == 0 ? -1 : rank - 1, got[0], "shifted");
        Cartcomm row = grid.Sub(new boolean[] {false, true});
        Check.same(dims[1], row.Size(), "row");
        Check.same(parms.coords[1], row.Rank(), "place in the row");
        Check.same(new int[] {dims[1]}, row.Get().dims, "dims of the row");
        Check.same(rank, grid.Map(dims, new boolean[2]), "Map");
        Check.same(rank < 1 ? 0 : MPI.UNDEFINED, grid.Map(new int[] {1}, new boolean[1]), "Map");
        Cartcomm single = world.Create_cart(new int[] {1}, new boolean[] {true}, false);
        Check.same(rank == 0, single != null, "outside the grid");
        Check.fails(() -> world.Create_cart(new int[] {size + 1}, new boolean[1], false), "only " + size);
        Check.same(MPI.CART, ((Cartcomm) grid.clone()).Topo_test(), "a copy");
        Check.same(MPI.UNDEFINED, world.Topo_test(), "no topology");
    }

    static void graphs() {
        // A ring.
        int[] index = new int[size];
        int[] edges = new int[2 * size];
        for (int r = 0; r < size; r++) {
            index[r] = 2 * (r + 1);
            edges[2 * r] = (r + size - 1) % size;
            edges[2 * r + 1] = (r + 1) % size;
        }
        Graphcomm ring = world.Create_graph(index, edges, false);
        Check.same(MPI.GRAPH, ring.Topo_test(), "topology");
        Check.same(new int[] {(rank + size - 1) % size, (rank + 1) % size}, ring.Neighbours(rank), "neighbours");
        Check.same(index, ring.Get().index, "index");
        Check.same(edges, ring.Get().edges, "edges");
        Check.same(rank, ring.Map(index, edges), "Map");
        Check.fails(() -> world.Create_graph(new int[] {1}, new int[] {5}, false), "edge leads to 5");
    }

    public static void main(String[] args) {
        boolean before = !MPI.Initialized() && MPI.Wtime() > 0;
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        Check.that(before && MPI.Initialized(), "before and after Init");
        Check.same(1, MPI.COMM_SELF.Size(), "self");
        Check.that(!MPI.Get_processor_name().isEmpty(), "name of the processor");
        groups();
        communicators();
        interCommunicators();
        grids();
        graphs();
        Check.end();
    }
}
