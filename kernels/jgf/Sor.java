import java.util.Arrays;
import java.util.Random;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Red-black successive over-relaxation on a square grid, whose rows are dealt in blocks. From the description of the
 * Java Grande Forum's MPJ benchmarks: rows travel as objects before and after, and their edges in 200 half sweeps.
 */
public class Sor {
    private static final int[] SIZES = {1000, 1500, 2000};
    private static final double[] REFERENCE = {0.498574406322512, 1.1234778980135105, 1.9954895063582696};
    private static final double OMEGA = 1.25;
    private static final int ITERATIONS = 100;

    private static double[][] grid(int n) {
        Random random = new Random(10101010L);
        double[][] grid = new double[n][n];
        for (double[] row : grid) {
            Arrays.setAll(row, i -> random.nextDouble() * 1e-6);
        }
        return grid;
    }

    public static void main(String[] args) {
        int size = Jgf.start("SOR", args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int n = SIZES[size];
        int block = Jgf.block(n, 2, world);
        int mine = Jgf.share(n, block, rank, world);
        double[][] all = rank == 0 ? grid(n) : null;
        // With the rows of the neighbours before and behind.
        double[][] own = new double[block + 2][n];
        if (rank == 0) {
            for (int i = 1; i <= Math.min(block + 1, n); i++) {
                own[i] = all[i - 1].clone();
            }
            for (int k = 1; k < world.Size(); k++) {
                int rows = Jgf.share(n, block, k, world);
                world.Send(all, k * block - 1, k == world.Size() - 1 ? rows + 1 : rows + 2, MPI.OBJECT, k, k);
            }
        } else {
            world.Recv(own, 0, block + 2, MPI.OBJECT, 0, rank);
        }
        world.Barrier();
        long begin = System.nanoTime(); // MPJ Express counts whole seconds in Wtime
        relax(world, own, mine, rank * block, n);
        world.Barrier();
        if (rank == 0) {
            System.arraycopy(own, 1, all, 0, mine);
            for (int k = 1; k < world.Size(); k++) {
                world.Recv(all, k * block, Jgf.share(n, block, k, world), MPI.OBJECT, k, k);
            }
        } else {
            world.Ssend(own, 1, mine, MPI.OBJECT, 0, rank);
        }
        world.Barrier();
        double seconds = (System.nanoTime() - begin) * 1e-9;
        String failure = null;
        if (rank == 0) {
            double sum = 0;
            for (int i = 1; i < n - 1; i++) {
                for (int j = 1; j < n - 1; j++) {
                    sum += all[i][j];
                }
            }
            failure = Math.abs(sum - REFERENCE[size]) <= 1e-12 ? null : "the sum is " + sum;
        }
        Jgf.end("SOR", size, seconds, ITERATIONS, "Iterations", failure);
    }

    private static void relax(Intracomm world, double[][] own, int rows, int first, int n) {
        int rank = world.Rank();
        double quarter = OMEGA * 0.25;
        double rest = 1 - OMEGA;
        for (int sweep = 0; sweep < 2 * ITERATIONS; sweep++) {
            for (int i = 1; i <= rows; i++) {
                int row = first + i - 1;
                if (row == 0 || row == n - 1) {
                    continue;
                }
                double[] above = own[i - 1];
                double[] here = own[i];
                double[] below = own[i + 1];
                for (int j = 1 + (row + 1 + sweep) % 2; j < n - 1; j += 2) {
                    here[j] = quarter * (above[j] + below[j] + here[j - 1] + here[j + 1]) + rest * here[j];
                }
            }
            if (rank < world.Size() - 1) {
                world.Sendrecv(
                        own[rows], 0, n, MPI.DOUBLE, rank + 1, 1, own[rows + 1], 0, n, MPI.DOUBLE, rank + 1, 2);
            }
            if (rank > 0) {
                world.Sendrecv(own[1], 0, n, MPI.DOUBLE, rank - 1, 2, own[0], 0, n, MPI.DOUBLE, rank - 1, 1);
            }
        }
    }
}
