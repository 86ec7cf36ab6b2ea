package mpi;

import java.util.Arrays;

/** The methods of {@link Request} under the names that they have in Open MPI's bindings for Java. */
abstract class OpenMpiRequest {
    OpenMpiRequest() {}

    private Request request() {
        return (Request) this;
    }

    /** Waits until the communication is complete. */
    public final void waitFor() throws MPIException {
        request().Wait();
    }

    /** As {@link #waitFor}, with the status. */
    public final Status waitStatus() throws MPIException {
        return request().Wait();
    }

    /** Whether the communication is complete. */
    public final boolean test() throws MPIException {
        return request().Test() != null;
    }

    /** The status if the communication is complete, otherwise null. */
    public final Status testStatus() throws MPIException {
        return request().Test();
    }

    /** Asks to cancel it; wait for it afterwards. */
    public final void cancel() throws MPIException {
        request().Cancel();
    }

    /** Gives the request up; its communication still completes. */
    public final void free() throws MPIException {
        request().Free();
    }

    /** Whether nothing is under way, or can be started. */
    public final boolean isNull() {
        return request().Is_null();
    }

    private static int[] indices(Status[] statuses) {
        return statuses == null ? null : Arrays.stream(statuses).mapToInt(status -> status.index).toArray();
    }

    /** Waits until one is complete: its index, or UNDEFINED if none is active. */
    public static int waitAny(Request[] requests) throws MPIException {
        return Request.Waitany(requests).index;
    }

    /** As {@link #waitAny}, with the status. */
    public static Status waitAnyStatus(Request[] requests) throws MPIException {
        return Request.Waitany(requests);
    }

    /** The index of one that is complete, or UNDEFINED. */
    public static int testAny(Request[] requests) throws MPIException {
        Status found = Request.Testany(requests);
        return found == null ? MPI.UNDEFINED : found.index;
    }

    /** The status of one that is complete; null if none is. */
    public static Status testAnyStatus(Request[] requests) throws MPIException {
        return Request.Testany(requests);
    }

    /** Waits for all. */
    public static void waitAll(Request[] requests) throws MPIException {
        Request.Waitall(requests);
    }

    /** Waits for all: their statuses, null for those that were not active. */
    public static Status[] waitAllStatus(Request[] requests) throws MPIException {
        return Request.Waitall(requests);
    }

    /** Whether all are complete. */
    public static boolean testAll(Request[] requests) throws MPIException {
        return Request.Testall(requests) != null;
    }

    /** The statuses of all if all are complete, otherwise null. */
    public static Status[] testAllStatus(Request[] requests) throws MPIException {
        return Request.Testall(requests);
    }

    /** Waits until at least one is complete: the indices of all that are; null if none is active. */
    public static int[] waitSome(Request[] requests) throws MPIException {
        return indices(Request.Waitsome(requests));
    }

    /** As {@link #waitSome}, with the statuses. */
    public static Status[] waitSomeStatus(Request[] requests) throws MPIException {
        return Request.Waitsome(requests);
    }

    /** The indices of all that are complete. */
    public static int[] testSome(Request[] requests) throws MPIException {
        return indices(Request.Testsome(requests));
    }

    /** The statuses of all that are complete. */
    public static Status[] testSomeStatus(Request[] requests) throws MPIException {
        return Request.Testsome(requests);
    }
}
