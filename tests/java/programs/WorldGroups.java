import java.util.List;
import java.util.Optional;
import org.limosa.Comm;
import org.limosa.Errors.CommunicatorException;
import org.limosa.Errors.DimensionsException;
import org.limosa.Errors.OtherException;
import org.limosa.Grid;
import org.limosa.Neighbours;
import org.limosa.Operation;
import org.limosa.Rank;
import org.limosa.World;

/** Communicators and grids of org.limosa, and how a world begins and ends. */
public class WorldGroups {
    static void split(World world) {
        int rank = world.rank();
        int size = world.size();
        Comm half = world.split(rank % 2).orElseThrow();
        Check.same((size + 1 - rank % 2) / 2, half.size(), "size of a part");
        Check.same(rank / 2, half.rank(), "rank in a part");
        Check.same(half.size(), half.allreduce(1, Operation.SUM), "sum over a part");
        try (Comm reversed = world.split(0, -rank).orElseThrow()) {
            Check.same(size - 1 - rank, reversed.rank(), "order by key");
            Check.same(size, reversed.allgather("x").size(), "reversed");
        }
        Optional<Comm> some = world.split(rank == 0 ? -1 : 3);
        Check.same(rank != 0, some.isPresent(), "no part");
        half.close();
        Check.throwsA(CommunicatorException.class, () -> half.barrier(), "was closed");
        half.close();
    }

    static void duplicate(World world) {
        int right = (world.rank() + 1) % world.size();
        int left = (world.rank() + world.size() - 1) % world.size();
        try (Comm other = world.duplicate()) {
            world.send("world", right);
            other.send("other", right);
            Check.same("other", other.receive(String.class, left), "messages do not meet");
            Check.same("world", world.receive(String.class, left), "messages do not meet");
        }
    }

    static void grids(World world) {
        int size = world.size();
        try (Grid grid = world.grid(new int[] {0, 0}, true)) {
            int[] dims = grid.dimensions();
            Check.same(size, dims[0] * dims[1], "all ranks");
            Check.that(dims[0] >= dims[1], "near to a square");
            Check.same(new boolean[] {true, false}, grid.periodic(), "periodic");
            int[] here = grid.coordinates();
            Check.same(grid.rank(), grid.rankAt(here), "coordinates");
            Check.same(here, grid.coordinates(grid.rank()), "coordinates");
            Check.same(Rank.NONE, grid.rankAt(here[0], dims[1]), "beyond the edge");
            Check.same(grid.rank(), grid.rankAt(here[0] - dims[0], here[1]), "around");
            List<Neighbours> beside = grid.neighbours();
            Check.same(grid.rankAt(here[0] + 1, here[1]), beside.get(0).after(), "after");
            Check.same(here[1] == 0 ? Rank.NONE : grid.rankAt(here[0], here[1] - 1), beside.get(1).before(), "before");
            for (Neighbours each : beside) {
                int[] got = grid.sendReceive(here, each.after(), int[].class, each.before());
                Check.same(each.before() == Rank.NONE ? null : grid.coordinates(each.before()), got, "from before");
            }
            Grid row = grid.sub(1);
            Check.same(dims[1], row.size(), "row");
            Check.same(new int[] {dims[1]}, row.dimensions(), "row");
            Check.same(here[0] * row.size(), row.allreduce(here[0], Operation.SUM), "row");
            Check.same(1, grid.sub().size(), "no direction remains");
        }
        try (Grid line = world.grid(new int[] {size})) {
            Check.same(world.rank(), line.rank(), "order");
            Check.same(world.rank() == 0 ? Rank.NONE : world.rank() - 1, line.neighbours().get(0).before(), "before");
        }
        Check.throwsA(DimensionsException.class, () -> world.grid(new int[] {size + 1}), "do not fit");
    }

    public static void main(String[] args) {
        World kept;
        try (World world = World.open(new String[] {"a", "b"})) {
            kept = world;
            Check.same(List.of("a", "b"), world.arguments(), "arguments");
            Check.same("World: rank " + world.rank() + " of " + world.size(), world.toString(), "text");
            Check.throwsA(OtherException.class, World::open, "is open already");
            Check.throwsA(OtherException.class, () -> World.run(inner -> {}), "is open already");
            split(world);
            duplicate(world);
            grids(world);
        }
        Check.throwsA(CommunicatorException.class, () -> kept.send("x", 0), "was closed");
        // An exception that is caught outside leaves a world that can be opened again.
        try (World world = World.open()) {
            Check.same(List.of(), world.arguments(), "no arguments");
            throw new IllegalStateException("caught");
        } catch (IllegalStateException e) {
            Check.same("caught", e.getMessage(), "exception");
        }
        // Package mpi beside it.
        mpi.MPI.Init(args);
        mpi.MPI.COMM_WORLD.Barrier();
        World.run(Check::end);
        if (args.length > 0) {
            mpi.MPI.Finalize();
        }
    }
}
