package mpjbuf;

/**
 * Nothing: programs for MPJ Express import its package {@code mpjbuf} without using it, and Java compiles this only if
 * the package has a class. Those that pack messages into its buffers use {@link mpi.Comm#Pack} with an array here.
 */
public final class BufferFactory {
    private BufferFactory() {}
}
