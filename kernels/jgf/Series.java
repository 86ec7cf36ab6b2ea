import mpi.Intracomm;
import mpi.MPI;

/**
 * Fourier coefficients of (x + 1)^x on [0, 2] by the trapezoid rule; the pairs are dealt in blocks. From the
 * description of the Java Grande Forum's MPJ benchmarks: 998 interior points, as there.
 */
public class Series {
    private static final int[] SIZES = {10_000, 100_000, 1_000_000};
    private static final double[][] REFERENCE = {
        {2.8729524964837996, 0.0}, {1.1161046676147888, -1.8819691893398025},
        {0.34429060398168704, -1.1645642623320958}, {0.15238898702519288, -0.8143461113044298}
    };
    private static final int POINTS = 1000;

    private enum Kind { PLAIN, COS, SIN }

    private static double function(double x, double omega, Kind kind) {
        double value = Math.pow(x + 1, x);
        return switch (kind) {
            case PLAIN -> value;
            case COS -> value * Math.cos(omega * x);
            case SIN -> value * Math.sin(omega * x);
        };
    }

    private static double integral(double omega, Kind kind) {
        double dx = 2.0 / POINTS;
        double sum = function(0, omega, kind) / 2;
        double x = 0;
        for (int i = 0; i < POINTS - 2; i++) {
            x += dx;
            sum += function(x, omega, kind);
        }
        return (sum + function(2, omega, kind) / 2) * dx;
    }

    public static void main(String[] args) {
        int size = Jgf.start("Series", args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int n = SIZES[size];
        int block = Jgf.block(n, 1, world);
        int mine = Jgf.share(n, block, rank, world);
        double[][] own = new double[2][block];
        double[][] all = new double[2][rank == 0 ? n : 0];
        long begin = System.nanoTime(); // MPJ Express counts whole seconds in Wtime
        for (int i = rank == 0 ? 1 : 0; i < mine; i++) {
            double omega = Math.PI * (i + block * rank);
            own[0][i] = integral(omega, Kind.COS);
            own[1][i] = integral(omega, Kind.SIN);
        }
        if (rank == 0) {
            own[0][0] = integral(0, Kind.PLAIN) / 2;
        }
        world.Barrier();
        for (int part = 0; part < 2; part++) {
            collect(world, own[part], all[part], block, mine, part * world.Size());
        }
        world.Barrier();
        double seconds = (System.nanoTime() - begin) * 1e-9;
        Jgf.end("Series", size, seconds, 2.0 * n - 1, "coefficients", rank == 0 ? failure(all) : null);
    }

    private static void collect(Intracomm world, double[] own, double[] all, int block, int mine, int tag) {
        if (world.Rank() > 0) {
            world.Ssend(own, 0, mine, MPI.DOUBLE, 0, world.Rank() + tag);
            return;
        }
        System.arraycopy(own, 0, all, 0, mine);
        for (int k = 1; k < world.Size(); k++) {
            // Posted for a whole block, as in the original; the last one is shorter.
            world.Recv(own, 0, block, MPI.DOUBLE, k, k + tag);
            System.arraycopy(own, 0, all, k * block, Jgf.share(all.length, block, k, world));
        }
    }

    private static String failure(double[][] found) {
        for (int i = 0; i < REFERENCE.length; i++) {
            for (int part = 0; part < 2; part++) {
                double deviation = Math.abs(found[part][i] - REFERENCE[i][part]);
                if (!(deviation <= 1e-12)) {
                    return "coefficient " + i + " is " + found[part][i] + ", not " + REFERENCE[i][part];
                }
            }
        }
        return null;
    }
}
