import mpi.*;

/** A number goes around until it is 0, in the form of Open MPI's example. */
class Ring {
    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        int rank = MPI.COMM_WORLD.getRank();
        int size = MPI.COMM_WORLD.getSize();
        int next = (rank + 1) % size;
        int previous = (rank + size - 1) % size;
        int[] left = {3};
        if (rank == 0) {
            MPI.COMM_WORLD.send(left, 1, MPI.INT, next, 50);
        }
        do {
            MPI.COMM_WORLD.recv(left, 1, MPI.INT, previous, 50);
            if (rank == 0) {
                left[0]--;
            }
            MPI.COMM_WORLD.send(left, 1, MPI.INT, next, 50);
        } while (left[0] > 0);
        if (rank == 0) {
            MPI.COMM_WORLD.recv(left, 1, MPI.INT, previous, 50);
        }
        System.out.println("rank " + rank + " of " + size + " has " + left[0]);
        MPI.Finalize();
    }
}
