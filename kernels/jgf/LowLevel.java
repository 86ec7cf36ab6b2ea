import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;

/**
 * The low-level operations of the Java Grande Forum's MPJ benchmarks (section 1), from their description: rates by
 * length, first of doubles, then of objects that hold one. The barrier after each collective operation is measured by
 * itself and subtracted. What has arrived is checked, which the original does not do.
 *
 * <p>Arguments: names of benchmarks (default: all); {@code --seconds S}: how long a length is repeated (10);
 * {@code --largest N}: elements at most; {@code --json}: lines as of {@code limosa bench}.
 */
public class LowLevel {
    private static final int SMALLEST = 4;
    private static final int MOST_REPEATS = 1_000_000;

    private enum Benchmark {
        PingPong(25, 5e6), Barrier(1, SMALLEST), Bcast(25, 5e6), Gather(25, 5e6), Scatter(2, 5e6), Reduce(2, 5e6),
        Alltoall(20, 1e6);

        final int lengths;
        final double largest;

        Benchmark(int lengths, double largest) {
            this.lengths = lengths;
            this.largest = largest;
        }

        /** Elements of each length. */
        int[] elements() {
            double first = Math.log(SMALLEST);
            double range = Math.log(largest) - first;
            int[] found = new int[lengths];
            // The least error of rounding would make 3 of the first length.
            Arrays.setAll(found, l -> (int) Math.floor(Math.exp(first + l * range / lengths) + 1e-9));
            return found;
        }
    }

    /** An element of the arrays of objects. */
    private record Item(double value) implements Serializable {}

    private static Intracomm world;
    private static int rank;
    private static int size;
    private static double seconds = 10;
    private static int largest = Integer.MAX_VALUE;
    private static boolean isJson;

    public static void main(String[] args) {
        String[] own = MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        for (Benchmark benchmark : chosen(own)) {
            if (benchmark == Benchmark.PingPong && size != 2) {
                if (rank == 0) {
                    System.err.println("PingPong is for 2 processes, and these are " + size + ": left out");
                }
                continue;
            }
            boolean isBarrier = benchmark == Benchmark.Barrier;
            for (Datatype type : isBarrier || benchmark == Benchmark.Reduce ? List.of(MPI.DOUBLE)
                    : List.of(MPI.DOUBLE, MPI.OBJECT)) {
                for (int m : benchmark.elements()) {
                    if (m <= largest) {
                        measure(benchmark, type, m);
                    }
                }
            }
        }
        MPI.Finalize();
    }

    private static List<Benchmark> chosen(String[] args) {
        List<Benchmark> found = new ArrayList<>();
        for (int i = 0; i < args.length; i++) {
            String word = args[i];
            boolean hasValue = i + 1 < args.length;
            if (word.equals("--json")) {
                isJson = true;
            } else if (word.equals("--seconds") && hasValue) {
                seconds = Double.parseDouble(args[++i]);
            } else if (word.equals("--largest") && hasValue) {
                largest = Integer.parseInt(args[++i]);
            } else {
                found.add(Arrays.stream(Benchmark.values()).filter(each -> each.name().equalsIgnoreCase(word)).findAny()
                        .orElseThrow(() -> new IllegalArgumentException("there is no low-level benchmark " + word
                                + "; there are " + Arrays.toString(Benchmark.values()))));
            }
        }
        return found.isEmpty() ? List.of(Benchmark.values()) : found;
    }

    private static void measure(Benchmark benchmark, Datatype type, int m) {
        boolean isDouble = type == MPI.DOUBLE;
        int parts = benchmark == Benchmark.Gather || benchmark == Benchmark.Scatter || benchmark == Benchmark.Alltoall
                ? size : 1;
        Object out = isDouble ? new double[m * parts] : new Item[m * parts];
        Object in = isDouble ? new double[m * parts] : new Item[m * parts];
        for (int i = 0; i < m * parts; i++) {
            put(out, i, value(rank, i));
        }
        if (benchmark == Benchmark.Bcast && rank == 0) {
            in = out;
        }
        double time = 0;
        int count = 1;
        // As in the original: twice as many until they have taken long enough.
        for (double[] elapsed = {0}; elapsed[0] < seconds && count < MOST_REPEATS;) {
            count = time == 0 ? 1 : 2 * count;
            world.Barrier();
            double begin = System.nanoTime();
            for (int i = 0; i < count; i++) {
                call(benchmark, type, m, out, in);
                if (benchmark != Benchmark.PingPong && benchmark != Benchmark.Barrier) {
                    world.Barrier();
                }
            }
            elapsed[0] = 1e-9 * (System.nanoTime() - begin);
            world.Barrier();
            world.Bcast(elapsed, 0, 1, MPI.DOUBLE, 0);
            time = elapsed[0];
        }
        if (benchmark != Benchmark.PingPong && benchmark != Benchmark.Barrier) {
            double begin = System.nanoTime();
            for (int i = 0; i < count; i++) {
                world.Barrier();
            }
            double rest = time - 1e-9 * (System.nanoTime() - begin);
            // After few repetitions noise may leave nothing; the rate with the barriers is too low, but not absurd.
            time = rest > 0 ? rest : time;
        }
        int[] right = new int[1];
        world.Allreduce(new int[] {isRight(benchmark, m, in) ? 1 : 0}, 0, right, 0, 1, MPI.INT, MPI.MIN);
        if (rank == 0) {
            print(benchmark, isDouble, m, count / time, right[0] == 1);
        }
        if (right[0] == 0) {
            throw new IllegalStateException("Validation failed: " + benchmark + " of " + m + " elements");
        }
    }

    private static void call(Benchmark benchmark, Datatype type, int m, Object out, Object in) {
        switch (benchmark) {
            case PingPong -> {
                if (rank == 0) {
                    world.Ssend(out, 0, m, type, 1, 1);
                    world.Recv(in, 0, m, type, 1, 2);
                } else {
                    world.Recv(in, 0, m, type, 0, 1);
                    world.Ssend(out, 0, m, type, 0, 2);
                }
            }
            case Barrier -> world.Barrier();
            case Bcast -> world.Bcast(in, 0, m, type, 0);
            case Gather -> world.Gather(out, 0, m, type, in, 0, m, type, 0);
            case Scatter -> world.Scatter(out, 0, m, type, in, 0, m, type, 0);
            case Reduce -> world.Reduce(out, 0, in, 0, m, type, MPI.SUM, 0);
            case Alltoall -> world.Alltoall(out, 0, m, type, in, 0, m, type);
        }
    }

    // --- what must arrive ---

    private static double value(int from, int at) {
        return 1000 * from + at % 997;
    }

    private static boolean isRight(Benchmark benchmark, int m, Object in) {
        boolean isRight = true;
        for (int i = 0; i < m; i++) {
            int at = i;
            isRight &= switch (benchmark) {
                case Barrier -> true;
                case PingPong -> get(in, i) == value(1 - rank, i);
                case Bcast -> get(in, i) == value(0, i);
                case Scatter -> get(in, i) == value(0, rank * m + i);
                case Reduce -> rank > 0 || get(in, i) == 1000 * size * (size - 1) / 2 + (double) size * (at % 997);
                case Gather -> rank > 0 || fromAll(in, m, i, i);
                case Alltoall -> fromAll(in, m, i, rank * m + i);
            };
        }
        return isRight;
    }

    private static boolean fromAll(Object in, int m, int to, int at) {
        boolean isRight = true;
        for (int from = 0; from < size; from++) {
            isRight &= get(in, from * m + to) == value(from, at);
        }
        return isRight;
    }

    private static void put(Object array, int at, double value) {
        if (array instanceof double[] numbers) {
            numbers[at] = value;
        } else {
            ((Item[]) array)[at] = new Item(value);
        }
    }

    private static double get(Object array, int at) {
        return array instanceof double[] numbers ? numbers[at] : ((Item[]) array)[at].value();
    }

    // --- output ---

    private static void print(Benchmark benchmark, boolean isDouble, int m, double rate, boolean isRight) {
        boolean isBarrier = benchmark == Benchmark.Barrier;
        double value = isBarrier ? rate : rate * m * (isDouble ? 8 : 1);
        String unit = isBarrier ? "barriers/s" : isDouble ? "bytes/s" : "objects/s";
        String form = isDouble ? "Double" : "Object";
        if (isJson) {
            System.out.printf(Locale.ROOT,
                    "{\"bench\":\"jgf_%s\",\"form\":\"hot\",\"bytes\":%d,\"ranks\":%d,\"metric\":\"rate\","
                            + "\"unit\":\"%s\",\"samples\":[%.6g],\"verified\":%b,\"x\":{\"elements\":\"%s\"}}%n",
                    benchmark.name().toLowerCase(Locale.ROOT), isBarrier ? 0 : 8 * m, size, unit, value, isRight,
                    form.toLowerCase(Locale.ROOT));
        } else {
            String name = "Section1:" + benchmark + (isBarrier ? "" : ":" + form);
            String length = isBarrier ? "" : "\tArray Size = " + m;
            System.out.printf(Locale.ROOT, "%-40s%.6g\t(%s)%s%n", name, value, unit, length);
        }
    }
}
