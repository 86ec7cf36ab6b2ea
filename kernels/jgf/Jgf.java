import mpi.Intracomm;
import mpi.MPI;

/**
 * What the kernels have in common: the size that the arguments ask for, blocks, the timer, and the lines of results in
 * the form of the Java Grande Forum's MPJ benchmarks, section 2.
 */
final class Jgf {
    private Jgf() {}

    /** Starts message passing; the index of the size: 0, 1, 2 for A, B, C, the first argument. */
    static int start(String kernel, String[] args) {
        String[] own = MPI.Init(args);
        String size = own.length == 0 ? "A" : own[0];
        int index = "ABC".indexOf(size);
        if (index < 0 || size.length() != 1) {
            throw new IllegalArgumentException(kernel + ": there is no size " + size + "; give A, B or C");
        }
        return index;
    }

    /** Elements of each block but the last one, if n are dealt to the processes in multiples of the granule. */
    static int block(int n, int granule, Intracomm world) {
        int grains = n / granule;
        int block = (grains + world.Size() - 1) / world.Size() * granule;
        if ((long) block * (world.Size() - 1) >= n) {
            throw new IllegalArgumentException(n + " elements leave nothing for the last of " + world.Size()
                    + " processes; use fewer");
        }
        return block;
    }

    /** Elements of a rank's block. */
    static int share(int n, int block, int rank, Intracomm world) {
        return rank < world.Size() - 1 ? block : n - block * rank;
    }

    /** Writes the result of rank 0, and ends message passing; an exception if the check has failed. */
    static void end(String kernel, int size, double seconds, double operations, String unit, String failure) {
        if (MPI.COMM_WORLD.Rank() == 0) {
            String line = "Section2:%s:Kernel:Size%c\t%.3f (s)\t%.4g\t(%s/s)%n";
            System.out.printf(line, kernel, "ABC".charAt(size), seconds, operations / seconds, unit);
            if (failure != null) {
                throw new IllegalStateException("Validation failed: " + failure);
            }
        }
        MPI.Finalize();
    }
}
