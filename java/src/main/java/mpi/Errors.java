package mpi;

import org.limosa.abi.Abi;

/** Errors that are found before a message is passed. */
final class Errors {
    static final int OTHER = Abi.MPI_ERR_OTHER;

    private Errors() {}

    static MPIException buffer(String text) {
        return MPIException.of(Abi.MPI_ERR_BUFFER, text);
    }

    static MPIException count(String text) {
        return MPIException.of(Abi.MPI_ERR_COUNT, text);
    }

    static MPIException type(String text) {
        return MPIException.of(Abi.MPI_ERR_TYPE, text);
    }

    /** Checks that there is a datatype; gives it. */
    static Datatype given(String function, Datatype type) {
        if (type == null) {
            throw type(function + ": the datatype is null");
        }
        return type;
    }

    static MPIException tag(String text) {
        return MPIException.of(Abi.MPI_ERR_TAG, text);
    }

    static MPIException rank(String text) {
        return MPIException.of(Abi.MPI_ERR_RANK, text);
    }

    static MPIException op(String text) {
        return MPIException.of(Abi.MPI_ERR_OP, text);
    }

    static MPIException argument(String text) {
        return MPIException.of(Abi.MPI_ERR_ARG, text);
    }

    static MPIException truncated(String text) {
        return MPIException.of(Abi.MPI_ERR_TRUNCATE, text);
    }

    static MPIException other(String text) {
        return MPIException.of(Abi.MPI_ERR_OTHER, text);
    }
}
