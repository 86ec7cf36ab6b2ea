import java.nio.IntBuffer;
import mpi.*;

/** Every pair of ranks exchanges a message, in the form of Open MPI's example. */
class Connectivity {
    static void exchange(int rank, int other) throws MPIException {
        IntBuffer mine = MPI.newIntBuffer(1);
        IntBuffer theirs = MPI.newIntBuffer(1);
        mine.put(0, rank);
        MPI.COMM_WORLD.sendRecv(mine, 1, MPI.INT, other, rank, theirs, 1, MPI.INT, other, other);
        if (theirs.get(0) != other) {
            throw new MPIException("rank " + other + " has sent " + theirs.get(0));
        }
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        int rank = MPI.COMM_WORLD.getRank();
        int size = MPI.COMM_WORLD.getSize();
        boolean verbose = args.length > 0 && args[0].equals("-v");
        for (int i = 0; i < size; i++) {
            if (rank == i) {
                for (int j = i + 1; j < size; j++) {
                    if (verbose) {
                        System.out.printf("%d and %d%n", i, j);
                    }
                    exchange(rank, j);
                }
            } else if (rank > i) {
                exchange(rank, i);
            }
        }
        MPI.COMM_WORLD.barrier();
        if (rank == 0) {
            System.out.printf("%d processes are connected%n", size);
        }
        MPI.Finalize();
    }
}
