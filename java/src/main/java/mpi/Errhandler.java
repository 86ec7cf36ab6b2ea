package mpi;

/** What happens after an error. Either way a method that fails throws; see {@link MPI#ERRORS_ARE_FATAL}. */
public class Errhandler {
    public static final int FATAL = 1;
    public static final int RETURN = 0;

    final int kind;

    public Errhandler(int kind) {
        this.kind = kind;
    }
}
