package org.limosa;

/**
 * An error of message passing. It is unchecked. There is one subclass for each error class of MPI-5 in {@link Errors}.
 *
 * <p>The message says which call failed on which rank, what is wrong, and what to do. The world can be used after it.
 */
public abstract class LimosaException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The error class of MPI-5, section 9.4. */
    private final int errorClass;

    LimosaException(int errorClass, String message, Throwable cause) {
        super(message, cause);
        this.errorClass = errorClass;
    }

    /**
     * The error class of MPI-5, section 9.4.
     *
     * @return a constant such as {@code MPI_ERR_RANK} of the standard ABI
     */
    public int errorClass() {
        return errorClass;
    }
}
