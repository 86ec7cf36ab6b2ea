package org.limosa.engine.local;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * Where the Java machines of a job find each other: each says which ranks it has and where it listens, and gets the
 * list of all. The connections stay open, so that each side notices the end of its peer.
 */
public final class Rendezvous implements AutoCloseable {
    /** HOST:PORT of the meeting point. */
    public static final String PLACE = "JAVA_LIMOSA_PLACE";
    /** The key of the job: hexadecimal digits. */
    public static final String KEY = "JAVA_LIMOSA_KEY";
    /** The first rank of a machine. */
    public static final String FIRST = "JAVA_LIMOSA_FIRST";
    /** The address at which a machine listens. */
    public static final String ADDRESS = "JAVA_LIMOSA_ADDRESS";

    /** A machine of the job. */
    record Machine(int first, int ranks, String host, int port) {
        String names() {
            return ranks == 1 ? "rank " + first : "ranks " + first + "-" + (first + ranks - 1);
        }
    }

    private record Guest(Machine machine, Wire wire) {}

    private final ServerSocket server;
    private final int ranks;
    private final List<Guest> guests = new ArrayList<>();

    /** Opens a meeting point for so many ranks; port 0 stands for any free one. */
    public Rendezvous(String address, int port, byte[] key, int ranks) throws IOException {
        this.ranks = ranks;
        server = new ServerSocket(port, 0, InetAddress.getByName(address));
        Wire.acceptAll(server, key, this::welcome);
    }

    public int port() {
        return server.getLocalPort();
    }

    private synchronized void welcome(Wire wire) {
        try {
            Machine machine =
                    new Machine(wire.in.readInt(), wire.in.readInt(), wire.in.readUTF(), wire.in.readInt());
            guests.add(new Guest(machine, wire));
            if (guests.stream().mapToInt(each -> each.machine.ranks).sum() >= ranks) {
                List<Machine> all = guests.stream().map(Guest::machine)
                        .sorted(Comparator.comparingInt(Machine::first)).toList();
                for (Guest each : guests) {
                    tell(each.wire.out, all);
                }
            }
        } catch (IOException e) {
            // The machine has gone; its launcher says so.
        }
    }

    private static void tell(DataOutputStream out, List<Machine> machines) throws IOException {
        out.writeInt(machines.size());
        for (Machine each : machines) {
            out.writeInt(each.first);
            out.writeInt(each.ranks);
            out.writeUTF(each.host);
            out.writeInt(each.port);
        }
        out.flush();
    }

    /** Ends the waits of machines for others that will not come. */
    @Override
    public synchronized void close() throws IOException {
        server.close();
        for (Guest each : guests) {
            each.wire.close();
        }
    }

    /** Where a machine of this environment meets others; null if it has all ranks itself. */
    public static LocalJob join(Map<String, String> environment, int here) throws IOException {
        String place = environment.get(PLACE);
        if (place == null) {
            return new LocalJob(here);
        }
        int colon = place.lastIndexOf(':');
        byte[] key = HexFormat.of().parseHex(environment.get(KEY));
        int first = Integer.parseInt(environment.get(FIRST));
        String address = environment.getOrDefault(ADDRESS, "127.0.0.1");
        try (ServerSocket server = new ServerSocket(0, 0, InetAddress.getByName(address))) {
            Wire launcher = Wire.callUntilThere(
                    place.substring(0, colon), Integer.parseInt(place.substring(colon + 1)), key);
            launcher.out.writeInt(first);
            launcher.out.writeInt(here);
            launcher.out.writeUTF(address);
            launcher.out.writeInt(server.getLocalPort());
            launcher.out.flush();
            List<Machine> all = new ArrayList<>();
            for (int left = launcher.in.readInt(); left > 0; left--) {
                all.add(new Machine(
                        launcher.in.readInt(), launcher.in.readInt(), launcher.in.readUTF(), launcher.in.readInt()));
            }
            Wire.daemon("limosa-launcher", () -> watch(launcher));
            return Network.connect(all, first, server, key);
        }
    }

    /** Ends this machine when its launcher has gone. */
    private static void watch(Wire launcher) {
        try {
            launcher.in.read();
        } catch (IOException e) {
            // It has gone.
        }
        Runtime.getRuntime().halt(1);
    }
}
