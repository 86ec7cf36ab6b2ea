package mpi;

import org.limosa.abi.Abi;

/** An error of message passing. It is unchecked, so programs with and without {@code throws} compile. */
public class MPIException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private static final int OTHER = Abi.MPI_ERR_OTHER;

    /** The error class of MPI-5, section 9.4. */
    private final int errorClass;

    public MPIException() {
        this(null, null, OTHER);
    }

    public MPIException(String message) {
        this(message, null, OTHER);
    }

    public MPIException(Throwable cause) {
        this(cause == null ? null : cause.toString(), cause, OTHER);
    }

    public MPIException(String message, Throwable cause) {
        this(message, cause, OTHER);
    }

    protected MPIException(String message, Throwable cause, int errorClass) {
        super(message, cause);
        this.errorClass = errorClass;
    }

    /** The exception for an error class. */
    public static MPIException of(int errorClass, String message) {
        return new MPIException(message, null, errorClass);
    }

    /** The error class of MPI-5, section 9.4. */
    public int getErrorClass() {
        return errorClass;
    }

    /** The code of the error; here that of its class. */
    public int getErrorCode() {
        return errorClass;
    }
}
