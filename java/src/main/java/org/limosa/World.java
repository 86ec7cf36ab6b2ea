package org.limosa;

import java.util.List;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.run.Uncaught;

/**
 * All ranks of the job.
 *
 * <p>{@snippet :
 * public static void main(String[] args) {
 *     World.run(args, world -> {
 *         int sum = world.allreduce(world.rank(), Operation.SUM);
 *         System.out.println("rank " + world.rank() + " of " + world.size() + ": " + sum);
 *     });
 * }
 * }
 *
 * <p>Ranks are processes, or threads with {@code limosa run --threads}. A program without a launcher is a job of one
 * rank. The MPI library is started with the first world (with {@code MPI_THREAD_MULTIPLE}), and finalised when the
 * program ends with its world closed. Messages never meet those of package {@code mpi}.
 */
public final class World extends Comm {
    private static final int FAILED = 1;
    /** The one that is open. */
    private static World current;

    private final List<String> arguments;

    private World(Home home, String[] args) {
        super(home, home.world);
        arguments = args == null ? List.of() : List.of(args);
    }

    /** Runs a program that needs no arguments. See {@link #run(String[], Program)}. */
    public static void run(Program program) {
        run(null, program);
    }

    /**
     * Runs a program with a world, which is closed at its end. An exception is shown with its rank, and ends the job.
     *
     * @param args what {@link #arguments} gives; may be null
     * @param program what this rank does
     * @throws Errors.OtherException if the world is open already, or there is no MPI library
     */
    public static void run(String[] args, Program program) {
        World world = open(args);
        try {
            program.run(world);
        } catch (Throwable thrown) {
            Uncaught.end(
                    "rank " + world.rank(), Thread.currentThread(), thrown, FAILED, () -> world.abort(FAILED));
        }
        world.close();
    }

    /** Opens the world without arguments. See {@link #open(String[])}. */
    public static World open() {
        return open(null);
    }

    /**
     * Opens the world, for a statement {@code try (World world = World.open())}. All ranks call it. It can be opened
     * again after it was closed. An exception that leaves the block, and that nothing catches, ends the job.
     *
     * @param args what {@link #arguments} gives; may be null
     * @return the world
     * @throws Errors.OtherException if the world is open already, or there is no MPI library
     */
    public static synchronized World open(String[] args) {
        if (current != null) {
            throw Errors.of(Abi.MPI_ERR_OTHER,
                    "World.open: the world is open already; use that one, or close it before", null);
        }
        try {
            current = new World(Home.get(), args);
        } catch (MPIException e) {
            throw Errors.of(e.getErrorClass(), "World.open: " + e.getMessage(), e.getCause());
        }
        return current;
    }

    /**
     * The arguments of the program.
     *
     * @return those that were given when the world was opened
     */
    public List<String> arguments() {
        return arguments;
    }

    /** Ends the use of the world. Later calls throw {@link Errors.CommunicatorException}. */
    @Override
    public void close() {
        synchronized (World.class) {
            if (end() != null) {
                current = null;
                home.close();
            }
        }
    }
}
