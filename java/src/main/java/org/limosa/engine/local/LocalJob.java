package org.limosa.engine.local;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Ranks that are threads: those of this machine, and of others if there is a network. */
public final class LocalJob {
    private static final int BITS_OF_MACHINE = 40;

    private final int ranks;
    private final int first;
    private final Mailbox[] mailboxes;
    private final Network network;
    private final AtomicLong contexts;
    private int staying;
    private final Map<Key, Known> communicators = new HashMap<>();
    private final Waits waits = new Waits();
    private volatile Observer observer;
    private final boolean[] haveLeft;
    private final boolean[] areInside;

    /** Communicators with the same number have no rank in common. */
    private record Key(long context, int firstRank) {}

    private static final class Known {
        final Shared shared;
        int users;

        Known(Shared shared) {
            this.shared = shared;
        }
    }

    /** All ranks are here. */
    public LocalJob(int ranks) {
        this(ranks, 0, ranks, null);
    }

    /** The ranks from the first one on are here. */
    LocalJob(int ranks, int first, int here, Network network) {
        this.ranks = ranks;
        this.first = first;
        this.network = network;
        mailboxes = Stream.generate(Mailbox::new).limit(here).toArray(Mailbox[]::new);
        // Numbers below are those of the communicators that all know from the start: the world, and one for each rank.
        contexts = new AtomicLong(((long) first + 1 << BITS_OF_MACHINE));
        staying = here;
        haveLeft = new boolean[here];
        areInside = new boolean[here];
        Waiting.setRanks(here);
    }

    /** The number of ranks, also on other machines. */
    public int ranks() {
        return ranks;
    }

    /** The first rank of this machine. */
    public int first() {
        return first;
    }

    /** Whether a rank is a thread of this machine. */
    boolean isHere(int number) {
        return number >= first && number < first + mailboxes.length;
    }

    Mailbox mailbox(int number) {
        return mailboxes[number - first];
    }

    /** What takes messages to a rank. */
    Post post(int number) {
        return isHere(number) ? mailbox(number) : network.post(number);
    }

    /** A number that no other communicator of the job has. */
    long newContext() {
        return contexts.getAndAdd(Shared.NUMBERS);
    }

    /** A communicator of these ranks, for one of them. */
    JavaCommunicator communicator(long context, int[][] groups, int side, int me) {
        boolean areHere = Arrays.stream(groups).flatMapToInt(IntStream::of).allMatch(this::isHere);
        Shared shared;
        synchronized (communicators) {
            Known known = communicators.computeIfAbsent(
                    new Key(context, groups[0][0]), key -> new Known(new Shared(context, groups, areHere, waits)));
            known.users++;
            shared = known.shared;
        }
        return areHere ? new LocalCommunicator(this, shared, side, me) : new SpreadCommunicator(this, shared, side, me);
    }

    /** A rank has freed a communicator. */
    void leave(Shared shared) {
        synchronized (communicators) {
            communicators.computeIfPresent(
                    new Key(shared.context, shared.groups[0][0]), (key, known) -> --known.users > 0 ? known : null);
        }
    }

    /** What carries the messages of a rank of this machine. */
    public LocalEngine engine(int rank) {
        int[] all = IntStream.range(0, ranks).toArray();
        JavaCommunicator world = communicator(0, new int[][] {all}, 0, rank);
        world.setName("MPI.COMM_WORLD");
        JavaCommunicator self = communicator(Shared.NUMBERS, new int[][] {{rank}}, 0, rank);
        self.setName("MPI.COMM_SELF");
        return new LocalEngine(this, world, self, rank);
    }

    /**
     * Looks for hangs from now on, unless the environment turns that off. With several machines, that of
     * rank 0 does, and asks the others. {@code mains}: the first thread of each rank of this machine, not yet started.
     */
    public void watch(Thread[] mains, Map<String, String> environment) {
        observer = new Observer(this, mains);
        if (first == 0) {
            HangWatch.start(this, environment);
        }
    }

    /** What the ranks of this machine do if none of them can go on by itself; otherwise null. */
    MachineLook look() {
        return observer == null ? null : observer.look();
    }

    /** What all ranks of the job do if none of them can go on by itself, and nothing is under way; otherwise null. */
    MachineLook lookAtAll() {
        MachineLook own = look();
        return own == null || network == null ? own : network.look(own);
    }

    /** A rank begins to pass messages. */
    void enter(int rank) {
        synchronized (haveLeft) {
            areInside[rank - first] = true;
        }
    }

    /** A rank passes no more messages of its own. */
    void leave(int rank) {
        synchronized (haveLeft) {
            areInside[rank - first] = false;
        }
    }

    /** Whether a rank of this machine has begun to pass messages, and has not ended that. */
    public boolean isInside(int rank) {
        synchronized (haveLeft) {
            return areInside[rank - first];
        }
    }

    /** A rank sends nothing more, unless all begin again. */
    void left(int rank) {
        synchronized (haveLeft) {
            areInside[rank - first] = false;
            haveLeft[rank - first] = true;
            if (--staying > 0) {
                return;
            }
            staying = mailboxes.length;
            Arrays.fill(haveLeft, false);
        }
        if (network != null) {
            network.leave();
        }
    }

    /** Whether a rank of this machine has left, while others have not. */
    boolean hasLeft(int rank) {
        synchronized (haveLeft) {
            return haveLeft[rank - first];
        }
    }

    Waits waits() {
        return waits;
    }

    /** The communicator that the program knows under which messages of this number to a rank are sent; or null. */
    Shared find(long context, int rank) {
        synchronized (communicators) {
            return communicators.values().stream().map(known -> known.shared)
                    .filter(shared -> shared.context == Shared.known(context))
                    .filter(shared -> Arrays.stream(shared.groups).flatMapToInt(IntStream::of).anyMatch(r -> r == rank))
                    .findFirst().orElse(null);
        }
    }

    /** Ends the job. */
    void abort(int code) {
        if (network != null) {
            network.abort(code);
        }
        Runtime.getRuntime().halt(code);
    }

    /** All waits end with this reason. */
    void fail(RuntimeException reason) {
        for (Mailbox each : mailboxes) {
            each.fail(reason);
        }
    }
}
