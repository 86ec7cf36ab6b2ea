import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import mpi.Intracomm;
import mpi.MPI;

/**
 * The operations of which models are made, called from Java: the twin of {@code primitives.c}, with the same lines and
 * options. Each call is timed by itself, all ranks start at the same time, and the slowest counts. Before the first
 * samples of an operation it is called until the compiler of the Java machine has done its work. The root is rank 0,
 * or, of a plan's {@code NAME@turns}, the next rank each time.
 *
 * <p>Options: {@code --sizes N,...}, {@code --only NAME,...} or {@code --plan NAME=N[,N];...}, {@code --samples N},
 * {@code --seconds S} (after which no case begins), {@code --start barrier|window}, {@code --quick},
 * {@code --buffers arrays|direct|objects} (objects: `send` alone). Exit code 1: something transferred was wrong.
 */
final class Primitives {
    private static final int[] SIZES = {0, 1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    private static final int[] QUICK_SIZES = {0, 1, 16, 256, 4 << 10, 64 << 10, 1 << 20};
    private static final int LEAST_SAMPLES = 4;
    private static final int BATCH = 20;
    private static final double WARM_UP = 2e-3;
    private static final double COMPILER_WARM_UP = 0.25;

    private final Intracomm world = MPI.COMM_WORLD;
    private final int rank = world.Rank();
    private final int ranks = world.Size();
    private final Options options;
    private final double end;
    private final double clockOffset;
    private final Set<Operation> warm = EnumSet.noneOf(Operation.class);
    private double window = 100e-6;
    private boolean isRight = true;

    private Primitives(Options options) {
        this.options = options;
        end = now() + options.seconds;
        clockOffset = options.hasWindows ? clockOffset() : 0;
    }

    public static void main(String[] args) {
        String[] own = MPI.Init(args);
        Options options = null;
        try {
            options = new Options(own);
        } catch (IllegalArgumentException e) {
            if (MPI.COMM_WORLD.Rank() == 0) {
                System.err.println("primitives: " + e.getMessage());
            }
            MPI.COMM_WORLD.Barrier();
        }
        boolean isRight = options != null && new Primitives(options).measureAll();
        MPI.Finalize();
        if (!isRight) {
            System.exit(options == null ? 2 : 1);
        }
    }

    private static double now() {
        return 1e-9 * System.nanoTime();
    }

    // --- cases ---

    private boolean measureAll() {
        for (Plan part : options.plan) {
            for (int n : part.sizes) {
                if (isOver()) {
                    return isRight;
                }
                boolean isOfPair = part.operation == Operation.SEND;
                if (isOfPair && ranks != 2 || part.operation == Operation.BARRIER && n != 0) {
                    continue;
                }
                measure(new Call(part.operation, n, options.buffers, world), part.hasTurns);
            }
        }
        return isRight;
    }

    /** Whether the time is over, by rank 0's clock. */
    private boolean isOver() {
        if (options.seconds == Double.POSITIVE_INFINITY) {
            return false;
        }
        int[] over = {now() > end ? 1 : 0};
        world.Bcast(over, 0, 1, MPI.INT, 0);
        return over[0] != 0;
    }

    private void measure(Call call, boolean hasTurns) {
        boolean isVerified = verify(call);
        call.hasTurns = hasTurns;
        isRight &= isVerified;
        double each = warmUp(call);
        int wanted = Math.max(LEAST_SAMPLES, (int) Math.min(options.samples, options.patience / each));
        List<Double> samples = new ArrayList<>();
        int late = 0;
        double[] mine = new double[BATCH];
        double[] slowest = new double[BATCH];
        double[] least = new double[BATCH];
        while (samples.size() < wanted) {
            int batch = Math.min(BATCH, wanted - samples.size());
            for (int i = 0; i < batch; i++) {
                mine[i] = options.hasWindows ? inWindow(call) : afterBarrier(call);
            }
            world.Allreduce(mine, 0, slowest, 0, batch, MPI.DOUBLE, MPI.MAX);
            world.Allreduce(mine, 0, least, 0, batch, MPI.DOUBLE, MPI.MIN);
            for (int i = 0; i < batch; i++) {
                // A call that any rank has begun late counts for none.
                if (least[i] >= 0) {
                    samples.add(slowest[i]);
                } else if (++late > BATCH) {
                    late = 0;
                    window *= 2;
                }
            }
            if (window > 1) {
                throw new IllegalStateException("the ranks do not manage to begin together; use --start barrier");
            }
        }
        if (rank == 0) {
            print(call, samples, isVerified);
        }
    }

    private void print(Call call, List<Double> samples, boolean isVerified) {
        double factor = call.operation == Operation.SEND ? 0.5e6 : 1e6;
        StringBuilder values = new StringBuilder();
        for (double sample : samples) {
            values.append(values.isEmpty() ? "" : ",").append(String.format(Locale.ROOT, "%.4f", sample * factor));
        }
        String line = "{\"bench\":\"%s\",\"form\":\"hot\",\"bytes\":%d,\"ranks\":%d,\"metric\":\"time\",\"unit\":\"us\","
                + "\"samples\":[%s],\"verified\":%b,\"x\":{\"start\":\"%s\",\"buffers\":\"%s\"%s}}";
        System.out.println(String.format(Locale.ROOT, line, call.operation.title(), call.n, ranks, values, isVerified,
                options.hasWindows ? "window" : "barrier", options.buffers.title(),
                call.hasTurns ? ",\"roots\":\"turns\"" : ""));
    }

    // --- starting together ---

    private double afterBarrier(Call call) {
        world.Barrier();
        call.takeTurn();
        double begin = now();
        call.run();
        return now() - begin;
    }

    /** Calls at a time that rank 0 has set; a negative time if this rank has begun late. */
    private double inWindow(Call call) {
        double[] start = {now() + window};
        world.Bcast(start, 0, 1, MPI.DOUBLE, 0);
        double begin = start[0] - clockOffset;
        call.takeTurn();
        boolean isLate = now() > begin;
        while (now() < begin) {
            Thread.onSpinWait();
        }
        call.run();
        return isLate ? -1 : now() - begin;
    }

    /** Rank 0's clock minus this one's, from the exchange of messages that took the least time. */
    private double clockOffset() {
        double found = 0;
        double[] theirs = new double[1];
        for (int other = 1; other < ranks; other++) {
            double least = Double.POSITIVE_INFINITY;
            for (int i = 0; i < 200; i++) {
                if (rank == 0) {
                    world.Recv(theirs, 0, 1, MPI.DOUBLE, other, 2);
                    theirs[0] = now();
                    world.Send(theirs, 0, 1, MPI.DOUBLE, other, 2);
                } else if (rank == other) {
                    double before = now();
                    world.Send(theirs, 0, 1, MPI.DOUBLE, 0, 2);
                    world.Recv(theirs, 0, 1, MPI.DOUBLE, 0, 2);
                    double after = now();
                    if (after - before < least) {
                        least = after - before;
                        found = theirs[0] - (before + after) / 2;
                    }
                }
            }
        }
        return found;
    }

    /** Calls until a batch is no faster than the one before; gives the seconds of a call, the same on every rank. */
    private double warmUp(Call call) {
        double enough = warm.add(call.operation) ? COMPILER_WARM_UP : WARM_UP;
        double spent = 0;
        double each = Double.POSITIVE_INFINITY;
        double[] slowest = new double[1];
        for (int batch = 1;; batch *= 2) {
            double before = each;
            double begin = now();
            for (int i = 0; i < batch; i++) {
                afterBarrier(call);
            }
            world.Allreduce(new double[] {now() - begin}, 0, slowest, 0, 1, MPI.DOUBLE, MPI.MAX);
            spent += slowest[0];
            each = slowest[0] / batch;
            if (spent > enough && each > 0.95 * before || spent > 2 * enough + 10 * WARM_UP) {
                return each;
            }
        }
    }

    /** Calls with each root, and again; whether what was left is right on every rank. */
    private boolean verify(Call call) {
        boolean isMine = true;
        for (int message = 0; message < 2 * ranks; message++) {
            call.fill(message);
            call.run();
            isMine &= call.check(message);
        }
        // Times are those of calls like most programs', whose root is rank 0 each time, unless roots take turns.
        call.root = 0;
        int[] all = new int[1];
        world.Allreduce(new int[] {isMine ? 1 : 0}, 0, all, 0, 1, MPI.INT, MPI.MIN);
        return all[0] == 1;
    }

    // --- what is called ---

    enum Operation {
        SEND, REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN, BCAST, ALLGATHER, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV,
        ALLTOALL, ALLTOALLV, BARRIER;

        String title() {
            return name().toLowerCase(Locale.ROOT);
        }

        boolean isReduction() {
            return this == REDUCE || this == ALLREDUCE || this == REDUCE_SCATTER || this == SCAN;
        }

        boolean isInBlocks() {
            return ordinal() >= ALLGATHER.ordinal() && this != BARRIER;
        }
    }

    enum Buffers {
        ARRAYS, DIRECT, OBJECTS;

        String title() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** An operation with its buffers; {@code n} is what models call n, see limosa_lab/model/metrics.py. */
    static final class Call {
        final Operation operation;
        final int n;
        private final Intracomm world;
        private final int rank;
        private final int ranks;
        private final Buffers buffers;
        private final int count;
        private final int[] counts;
        private final int[] places;
        private final Object out;
        private final Object in;
        private int root;
        private boolean hasTurns;

        Call(Operation operation, int n, Buffers buffers, Intracomm world) {
            this.operation = operation;
            this.n = n;
            this.buffers = buffers;
            this.world = world;
            rank = world.Rank();
            ranks = world.Size();
            int items = operation.isReduction() ? n / 8 : operation.isInBlocks() ? n / ranks : n;
            count = n > 0 ? Math.max(items, 1) : 0;
            boolean isScattered = operation == Operation.REDUCE_SCATTER;
            counts = new int[ranks];
            places = new int[ranks];
            for (int i = 0; i < ranks; i++) {
                counts[i] = isScattered ? count / ranks + (i < count % ranks ? 1 : 0) : count;
                places[i] = i == 0 ? 0 : places[i - 1] + counts[i - 1];
            }
            out = buffer(count * (operation.isInBlocks() ? ranks : 1));
            in = buffer(isScattered ? counts[rank] : count * (operation.isInBlocks() ? ranks : 1));
        }

        private Object buffer(int items) {
            if (buffers == Buffers.OBJECTS) {
                return new Object[] {new byte[items]};
            }
            if (operation.isReduction()) {
                return buffers == Buffers.ARRAYS ? new double[items]
                        : ByteBuffer.allocateDirect(8 * items).order(ByteOrder.nativeOrder()).asDoubleBuffer();
            }
            return buffers == Buffers.ARRAYS ? new byte[items] : ByteBuffer.allocateDirect(items);
        }

        /** Makes the next rank the root if roots take turns. */
        void takeTurn() {
            root = hasTurns ? (root + 1) % ranks : root;
        }

        void run() {
            switch (operation) {
                case SEND -> pingPong();
                case REDUCE -> world.Reduce(out, 0, in, 0, count, MPI.DOUBLE, MPI.SUM, root);
                case ALLREDUCE -> world.Allreduce(out, 0, in, 0, count, MPI.DOUBLE, MPI.SUM);
                case REDUCE_SCATTER -> world.Reduce_scatter(out, 0, in, 0, counts, MPI.DOUBLE, MPI.SUM);
                case SCAN -> world.Scan(out, 0, in, 0, count, MPI.DOUBLE, MPI.SUM);
                case BCAST -> world.Bcast(in, 0, count, MPI.BYTE, root);
                case ALLGATHER -> world.Allgather(out, 0, count, MPI.BYTE, in, 0, count, MPI.BYTE);
                case ALLGATHERV -> world.Allgatherv(out, 0, count, MPI.BYTE, in, 0, counts, places, MPI.BYTE);
                case GATHER -> world.Gather(out, 0, count, MPI.BYTE, in, 0, count, MPI.BYTE, root);
                case GATHERV -> world.Gatherv(out, 0, count, MPI.BYTE, in, 0, counts, places, MPI.BYTE, root);
                case SCATTER -> world.Scatter(out, 0, count, MPI.BYTE, in, 0, count, MPI.BYTE, root);
                case SCATTERV -> world.Scatterv(out, 0, counts, places, MPI.BYTE, in, 0, count, MPI.BYTE, root);
                case ALLTOALL -> world.Alltoall(out, 0, count, MPI.BYTE, in, 0, count, MPI.BYTE);
                case ALLTOALLV ->
                    world.Alltoallv(out, 0, counts, places, MPI.BYTE, in, 0, counts, places, MPI.BYTE);
                case BARRIER -> world.Barrier();
            }
        }

        private void pingPong() {
            boolean isObject = buffers == Buffers.OBJECTS;
            mpi.Datatype type = isObject ? MPI.OBJECT : MPI.BYTE;
            int items = isObject ? 1 : count;
            if (rank == 0) {
                world.Send(out, 0, items, type, 1, 1);
                world.Recv(in, 0, items, type, 1, 1);
            } else {
                world.Recv(in, 0, items, type, 0, 1);
                world.Send(out, 0, items, type, 0, 1);
            }
        }

        /** Prepares the buffers for a call; the next root is that of the message. */
        void fill(int message) {
            root = message % ranks;
            for (int i = 0; i < length(in); i++) {
                put(in, i, 255);
            }
            for (int i = 0; i < length(out); i++) {
                int to = operation == Operation.SEND ? 1 - rank : count == 0 || isSame() ? 0 : i / count;
                put(out, i, operation.isReduction() ? i % 97 + rank + message
                        : pattern(rank, to, isSame() || operation == Operation.SEND ? i : i % count, message));
            }
            if (operation == Operation.BCAST && rank == message % ranks) {
                for (int i = 0; i < count; i++) {
                    put(in, i, pattern(rank, 0, i, message));
                }
            }
        }

        /** Whether each rank has the same bytes for all. */
        private boolean isSame() {
            return operation.ordinal() < Operation.SCATTER.ordinal();
        }

        private static int pattern(int from, int to, int at, int message) {
            return (7 * at + 31 * from + 13 * to + 3 * message + 1) % 251;
        }

        boolean check(int message) {
            return switch (operation) {
                case BARRIER -> true;
                case SEND -> holds(0, count, i -> pattern(1 - rank, rank, i, message));
                case BCAST -> holds(0, count, i -> pattern(root, 0, i, message));
                case SCATTER, SCATTERV -> holds(0, count, i -> pattern(root, rank, i, message));
                case REDUCE -> rank != root || holds(0, count, i -> sum(ranks, i, message));
                case ALLREDUCE -> holds(0, count, i -> sum(ranks, i, message));
                case SCAN -> holds(0, count, i -> sum(rank + 1, i, message));
                case REDUCE_SCATTER ->
                    holds(0, counts[rank], i -> sum(ranks, places[rank] + i, message));
                default -> {
                    boolean isAtRoot = operation == Operation.GATHER || operation == Operation.GATHERV;
                    int to = isSame() ? 0 : rank;
                    boolean isRight = true;
                    for (int from = 0; from < ranks && (!isAtRoot || rank == root); from++) {
                        int sender = from;
                        isRight &= holds(from * count, count, i -> pattern(sender, to, i, message));
                    }
                    yield isRight;
                }
            };
        }

        private static int sum(int of, int at, int message) {
            return of * (at % 97 + message) + of * (of - 1) / 2;
        }

        private boolean holds(int first, int items, java.util.function.IntUnaryOperator expected) {
            for (int i = 0; i < items; i++) {
                if (get(in, first + i) != expected.applyAsInt(i)) {
                    System.err.printf("primitives: rank %d: %s of %d bytes: element %d is %d and should be %d%n", rank,
                            operation.title(), n, i, (int) get(in, first + i), expected.applyAsInt(i));
                    return false;
                }
            }
            return true;
        }

        // --- buffers of any kind ---

        private static int length(Object buffer) {
            return switch (buffer) {
                case byte[] bytes -> bytes.length;
                case double[] numbers -> numbers.length;
                case ByteBuffer bytes -> bytes.capacity();
                case DoubleBuffer numbers -> numbers.capacity();
                default -> length(((Object[]) buffer)[0]);
            };
        }

        private static void put(Object buffer, int at, int value) {
            switch (buffer) {
                case byte[] bytes -> bytes[at] = (byte) value;
                case double[] numbers -> numbers[at] = value;
                case ByteBuffer bytes -> bytes.put(at, (byte) value);
                case DoubleBuffer numbers -> numbers.put(at, value);
                default -> put(((Object[]) buffer)[0], at, value);
            }
        }

        private static double get(Object buffer, int at) {
            return switch (buffer) {
                case byte[] bytes -> bytes[at] & 0xff;
                case double[] numbers -> numbers[at];
                case ByteBuffer bytes -> bytes.get(at) & 0xff;
                case DoubleBuffer numbers -> numbers.get(at);
                default -> get(((Object[]) buffer)[0], at);
            };
        }
    }

    // --- options ---

    /** Sizes at which an operation is measured, with root 0 or roots by turns. */
    record Plan(Operation operation, int[] sizes, boolean hasTurns) {}

    static final class Options {
        List<Plan> plan;
        int samples = 150;
        double seconds = Double.POSITIVE_INFINITY;
        double patience = 1;
        boolean hasWindows;
        Buffers buffers = Buffers.ARRAYS;

        Options(String[] words) {
            int[] sizes = SIZES;
            String[] only = {};
            String written = null;
            for (int i = 0; i < words.length; i++) {
                if (words[i].equals("--quick")) {
                    samples = 40;
                    patience = 0.1;
                    sizes = sizes == SIZES ? QUICK_SIZES : sizes;
                    continue;
                }
                if (i + 1 == words.length) {
                    throw new IllegalArgumentException("`" + words[i] + "` is no option, or lacks its value");
                }
                String value = words[++i];
                switch (words[i - 1]) {
                    case "--sizes" -> sizes = sizes(value);
                    case "--only" -> only = value.split(",");
                    case "--plan" -> written = value;
                    case "--samples" -> samples = number(value);
                    case "--seconds" -> seconds = Double.parseDouble(value);
                    case "--start" -> hasWindows = value.equals("window");
                    case "--buffers" -> buffers = Arrays.stream(Buffers.values())
                            .filter(each -> each.title().equals(value)).findAny()
                            .orElseThrow(() -> new IllegalArgumentException(
                                    "--buffers " + value + ": there are arrays, direct and objects"));
                    case "--forms" -> {
                        if (!Arrays.asList(value.split(",")).contains("hot")) {
                            throw new IllegalArgumentException("buffers of Java are hot only: --forms hot");
                        }
                    }
                    default -> throw new IllegalArgumentException("there is no option `" + words[i - 1] + "`");
                }
            }
            plan = written != null ? planned(written) : chosen(only, sizes);
            if (written != null) {
                patience = 0.05;
                samples = Math.min(samples, 60);
            }
            if (buffers == Buffers.OBJECTS) {
                plan = plan.stream().filter(part -> part.operation == Operation.SEND).toList();
            }
        }

        private static int number(String text) {
            if (!text.matches("[0-9]{1,9}")) {
                throw new IllegalArgumentException("`" + text + "` is not a number from 0 to 999999999");
            }
            return Integer.parseInt(text);
        }

        private static int[] sizes(String text) {
            return Arrays.stream(text.split(",")).mapToInt(Options::number).toArray();
        }

        /** All operations, or those of these names that the interface of mpiJava has. */
        private static List<Plan> chosen(String[] only, int[] sizes) {
            return Arrays.stream(Operation.values())
                    .filter(each -> only.length == 0 || Arrays.asList(only).contains(each.title()))
                    .map(each -> new Plan(each, sizes, false)).toList();
        }

        private static List<Plan> planned(String text) {
            List<Plan> found = new ArrayList<>();
            for (String part : text.split(";")) {
                String[] sides = part.split("=");
                if (sides.length != 2) {
                    throw new IllegalArgumentException("`" + part + "` in the plan is not like bcast=0,4,16");
                }
                String[] name = sides[0].split("@");
                for (Operation each : Operation.values()) {
                    if (each.title().equals(name[0])) {
                        found.add(new Plan(each, sizes(sides[1]), name.length > 1));
                    }
                }
            }
            return found;
        }
    }
}
