package mpi;

/** A reduction that a program defines. */
public abstract class User_function {
    /** Sets every item of {@code inoutvec} to (item of {@code invec}) op (item of {@code inoutvec}). */
    public abstract void Call(
            Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype)
            throws MPIException;
}
