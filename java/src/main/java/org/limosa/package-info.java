/**
 * Message passing for today's Java: values and arrays of any class, futures, and exceptions with names.
 *
 * <p>Begin with {@link org.limosa.World}. The methods are those of {@link org.limosa.Comm}; each names the function of
 * MPI-5 that it stands for. Package {@code mpi} has the interface of mpiJava 1.2 instead; both may be used in a
 * program.
 */
package org.limosa;
