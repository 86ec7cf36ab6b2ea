import java.util.Arrays;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Linpack: LU factorisation with partial pivoting and solution of a system; columns are dealt cyclically. From the
 * description of the Java Grande Forum's MPJ benchmarks: columns travel as objects, each step broadcasts one and its
 * pivot.
 *
 * <p>The matrix of size C is singular: its rows come again after 1024. There is no solution then, and the factors are
 * checked instead. The original's check lets a solution that is no number pass.
 */
public class LuFact {
    private static final int[] SIZES = {500, 1000, 2000};
    private static final double[] LIMITS = {6, 12, 20};
    private static final int TAG = 10;

    /** The matrix by columns, with b behind; the largest element is returned. */
    private static double generate(double[][] a, double[] b, int n) {
        int seed = 1325;
        double largest = 0;
        Arrays.fill(b, 0);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                seed = 3125 * seed % 65536;
                a[j][i] = (seed - 32768.0) / 16384.0;
                largest = Math.max(largest, a[j][i]);
                b[i] += a[j][i];
            }
        }
        return largest;
    }

    public static void main(String[] args) {
        int size = Jgf.start("LUFact", args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int n = SIZES[size];
        int processes = world.Size();
        double[][] all = new double[rank == 0 ? n : 0][n + 1];
        double[] b = new double[n + 1];
        int columns = (n - rank + processes - 1) / processes;
        double[][] own = new double[columns][n + 1];
        if (rank == 0) {
            generate(all, b, n);
            for (int c = 0; c < n; c++) {
                if (c % processes == 0) {
                    own[c / processes] = all[c].clone();
                } else {
                    world.Send(all, c, 1, MPI.OBJECT, c % processes, TAG);
                }
            }
        } else {
            for (int c = 0; c < columns; c++) {
                world.Recv(own, c, 1, MPI.OBJECT, 0, TAG);
            }
        }
        // Which process has a column, and where: known to all here, sent in the original.
        int[] table = new int[n];
        world.Bcast(table, 0, n, MPI.INT, 0);
        world.Bcast(table, 0, n, MPI.INT, 0);
        int[] pivots = new int[n];
        world.Barrier();
        long begin = System.nanoTime(); // MPJ Express counts whole seconds in Wtime
        factor(world, own, pivots, n);
        if (rank == 0) {
            for (int c = 0; c < n; c++) {
                if (c % processes == 0) {
                    all[c] = own[c / processes];
                } else {
                    world.Recv(all, c, 1, MPI.OBJECT, c % processes, TAG);
                }
            }
            solve(all, b, pivots, n);
        } else {
            for (int c = 0; c < columns; c++) {
                world.Send(own, c, 1, MPI.OBJECT, 0, TAG);
            }
        }
        world.Barrier();
        double seconds = (System.nanoTime() - begin) * 1e-9;
        double residual = rank == 0 ? residual(all, b, pivots, n) : 0;
        double operations = (2.0 * n * n * n / 3 + 2.0 * n * n) / 1e6;
        String failure = residual <= LIMITS[size] ? null : "the normalised residual is " + residual;
        Jgf.end("LUFact", size, seconds, operations, "Mflops", failure);
    }

    private static void factor(Intracomm world, double[][] own, int[] pivots, int n) {
        int rank = world.Rank();
        int processes = world.Size();
        double[] column = new double[n + 1];
        int[] pivot = new int[1];
        for (int k = 0; k < n - 1; k++) {
            if (rank == k % processes) {
                double[] mine = own[k / processes];
                pivot[0] = largest(mine, k, n);
                swap(mine, k, pivot[0]);
                if (mine[k] != 0) {
                    double factor = -1 / mine[k];
                    for (int i = k + 1; i < n; i++) {
                        mine[i] *= factor;
                    }
                }
                System.arraycopy(mine, 0, column, 0, n + 1);
            }
            world.Bcast(column, 0, n + 1, MPI.DOUBLE, k % processes);
            world.Bcast(pivot, 0, 1, MPI.INT, k % processes);
            pivots[k] = pivot[0];
            for (int c = k / processes; c < own.length; c++) {
                if (c * processes + rank > k) {
                    swap(own[c], k, pivot[0]);
                    add(own[c][k], column, own[c], k + 1, n);
                }
            }
        }
        pivots[n - 1] = n - 1;
    }

    private static int largest(double[] column, int from, int n) {
        int found = from;
        for (int i = from + 1; i < n; i++) {
            if (Math.abs(column[i]) > Math.abs(column[found])) {
                found = i;
            }
        }
        return found;
    }

    private static void swap(double[] column, int i, int k) {
        double value = column[i];
        column[i] = column[k];
        column[k] = value;
    }

    private static void add(double factor, double[] from, double[] to, int begin, int end) {
        for (int i = begin; i < end; i++) {
            to[i] += factor * from[i];
        }
    }

    private static void solve(double[][] a, double[] b, int[] pivots, int n) {
        for (int k = 0; k < n - 1; k++) {
            swap(b, k, pivots[k]);
            add(b[k], a[k], b, k + 1, n);
        }
        for (int k = n - 1; k >= 0; k--) {
            b[k] /= a[k][k];
            add(-b[k], a[k], b, 0, k);
        }
    }

    /** How well x solves the system, or else the factors make up the matrix, in units of the rounding error. */
    private static double residual(double[][] factors, double[] x, int[] pivots, int n) {
        double[][] a = new double[n][n + 1];
        double[] b = new double[n + 1];
        double norm = generate(a, b, n);
        if (isSingular(factors, n)) {
            subtractProduct(factors, pivots, b, n);
            return largest(b) / (n * norm * Math.ulp(1.0));
        }
        for (int c = 0; c < n; c++) {
            add(-x[c], a[c], b, 0, n);
        }
        return largest(b) / (n * norm * largest(x) * Math.ulp(1.0));
    }

    private static boolean isSingular(double[][] factors, int n) {
        for (int k = 0; k < n; k++) {
            if (factors[k][k] == 0) {
                return true;
            }
        }
        return false;
    }

    /** Subtracts from b the product of the factors and a vector of ones, which b is for the matrix itself. */
    private static void subtractProduct(double[][] factors, int[] pivots, double[] b, int n) {
        double[] product = new double[n + 1];
        for (int c = 0; c < n; c++) {
            add(1, factors[c], product, 0, c + 1);
        }
        for (int k = n - 2; k >= 0; k--) {
            add(-product[k], factors[k], product, k + 1, n);
            swap(product, k, pivots[k]);
        }
        add(-1, product, b, 0, n);
    }

    private static double largest(double[] vector) {
        return Arrays.stream(vector).map(Math::abs).reduce(0, Math::max);
    }
}
