package mpi;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.limosa.engine.Communicator;
import org.limosa.engine.Communicator.Started;

/**
 * How Open MPI's bindings start processes, and meet other groups (MPI-5, chapter 11). The MPI library does it, so there
 * is none of it where ranks are threads. Messages of elements can be exchanged at once, and collective operations if
 * both groups are programs of Java; for objects make a copy with {@code dup()} in both groups.
 */
abstract class OpenMpiProcesses extends Comm {
    OpenMpiProcesses(Communicator communicator) {
        super(communicator);
    }

    /**
     * Starts processes of a program; its arguments are used at the root.
     *
     * @param command the program, such as {@code java}
     * @param argv its arguments, or null
     * @param maxprocs how many processes
     * @param info hints for the launcher, such as {@code wdir}
     * @param root the rank whose arguments are used
     * @param errcodes room for the error code of each process, or null
     * @return a communicator between the callers and the processes
     */
    public final Intercomm spawn(String command, String[] argv, int maxprocs, Info info, int root, int[] errcodes)
            throws MPIException {
        return spawnMultiple(
                new String[] {command}, new String[][] {argv}, new int[] {maxprocs}, new Info[] {info}, root, errcodes);
    }

    /** As {@link #spawn}, for several programs. */
    public final Intercomm spawnMultiple(
            String[] commands, String[][] argv, int[] maxprocs, Info[] info, int root, int[] errcodes)
            throws MPIException {
        checkRoot("spawn", root);
        boolean isRoot = Rank() == root;
        int n = isRoot ? Errors.present("spawn", "the array of commands", commands).length : 0;
        List<Started> programs =
                IntStream.range(0, n).mapToObj(i -> started(i, commands, argv, maxprocs, info)).toList();
        return Intercomm.withOthers(communicator().spawn(programs, root, errcodes));
    }

    private static Started started(int i, String[] commands, String[][] argv, int[] maxprocs, Info[] info) {
        String[] own = argv == null || argv[i] == null ? new String[0] : argv[i];
        Arrays.stream(own).forEach(each -> Errors.present("spawn", "an argument", each));
        int processes = maxprocs == null || maxprocs.length <= i ? 0 : maxprocs[i];
        if (processes < 1) {
            throw Errors.argument(
                    "spawn: " + processes + " processes of " + commands[i] + "; there must be at least one");
        }
        return new Started(
                Errors.present("spawn", "the command", commands[i]), List.of(own), processes,
                Info.pairs(info == null ? null : info[i]));
    }

    /** Waits at a port for another group that connects to it; the port is used at the root. */
    public final Intercomm accept(String port, Info info, int root) throws MPIException {
        return meet("accept", port, true, root);
    }

    /** Waits at a port for another group that connects to it; the port is used at the root. */
    public final Intercomm accept(String port, int root) throws MPIException {
        return meet("accept", port, true, root);
    }

    /** Connects to a port at which another group waits; the port is used at the root. */
    public final Intercomm connect(String port, Info info, int root) throws MPIException {
        return meet("connect", port, false, root);
    }

    /** Connects to a port at which another group waits; the port is used at the root. */
    public final Intercomm connect(String port, int root) throws MPIException {
        return meet("connect", port, false, root);
    }

    private Intercomm meet(String function, String port, boolean accepts, int root) {
        checkRoot(function, root);
        if (Rank() == root) {
            Errors.present(function, "the port", port);
        }
        return Intercomm.withOthers(communicator().meet(port, accepts, root));
    }

    /** A new port. */
    public static String openPort() throws MPIException {
        return MPI.engine().ports("openPort").open();
    }

    /** A new port. */
    public static String openPort(Info info) throws MPIException {
        return openPort();
    }

    /** Closes a port. */
    public static void closePort(String name) throws MPIException {
        MPI.engine().ports("closePort").close(Errors.present("closePort", "the port", name));
    }

    /** Gives a port a name, by which other jobs find it. */
    public static void publishName(String service, String port) throws MPIException {
        MPI.engine().ports("publishName").publish(
                Errors.present("publishName", "the name", service), Errors.present("publishName", "the port", port));
    }

    /** Gives a port a name, by which other jobs find it. */
    public static void publishName(String service, Info info, String port) throws MPIException {
        publishName(service, port);
    }

    /** Takes the name from a port. */
    public static void unpublishName(String service, String port) throws MPIException {
        MPI.engine().ports("unpublishName").unpublish(
                Errors.present("unpublishName", "the name", service),
                Errors.present("unpublishName", "the port", port));
    }

    /** Takes the name from a port. */
    public static void unpublishName(String service, Info info, String port) throws MPIException {
        unpublishName(service, port);
    }

    /** The port of a name. */
    public static String lookupName(String service) throws MPIException {
        return MPI.engine().ports("lookupName").lookUp(Errors.present("lookupName", "the name", service));
    }

    /** The port of a name. */
    public static String lookupName(String service, Info info) throws MPIException {
        return lookupName(service);
    }
}
