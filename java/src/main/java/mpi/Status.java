package mpi;

import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;

/** What is known of a message: whose it is, its tag and its length. */
public class Status {
    /** The rank of the sender. */
    public int source = MPI.ANY_SOURCE;
    /** The tag. */
    public int tag = MPI.ANY_TAG;
    /** The place of the request in the array that was waited for. */
    public int index = MPI.UNDEFINED;
    /** Items that were received, as far as the receive has a datatype. */
    public int count;
    /** Elements that were received. */
    public int numEls;

    private long bytes;
    private boolean cancelled;
    /** Items of a message of objects; -1 for others. */
    private int objects = -1;

    public Status() {}

    Status(Envelope envelope, Datatype type) {
        source = envelope.source() == Communicator.ANY ? MPI.ANY_SOURCE : envelope.source();
        tag = envelope.tag() == Communicator.ANY ? MPI.ANY_TAG : envelope.tag();
        bytes = envelope.bytes();
        cancelled = envelope.cancelled();
        if (type != null && type.base != null) {
            long elements = bytes / type.base.bytes;
            numEls = orUndefined(elements);
            count = type.size() == 0 ? 0 : orUndefined(elements / type.size());
        }
    }

    private static int orUndefined(long number) {
        return number > Integer.MAX_VALUE ? MPI.UNDEFINED : (int) number;
    }

    /** The status of a message of objects. */
    static Status ofObjects(int source, int tag, long bytes, int objects) {
        Status status = new Status(new Envelope(source, tag, bytes, false), null);
        status.objects = objects;
        status.count = objects;
        status.numEls = objects;
        return status;
    }

    /** The status of a receive from no process. */
    static Status ofNobody() {
        Status status = new Status();
        status.source = MPI.PROC_NULL;
        status.objects = 0;
        return status;
    }

    /** Items of the message, or UNDEFINED if it does not hold whole ones. */
    public int Get_count(Datatype datatype) throws MPIException {
        Errors.checkType("Get_count", datatype);
        if (datatype.isObject) {
            return objects < 0 ? MPI.UNDEFINED : objects / Math.max(1, datatype.size());
        }
        if (datatype.base == null || datatype.size() == 0) {
            return datatype.base == null || bytes == 0 ? 0 : MPI.UNDEFINED;
        }
        long each = (long) datatype.size() * datatype.base.bytes;
        return bytes % each == 0 ? orUndefined(bytes / each) : MPI.UNDEFINED;
    }

    /** Elements of the message, or UNDEFINED for objects or if it does not hold whole ones. */
    public int Get_elements(Datatype datatype) throws MPIException {
        Errors.checkType("Get_elements", datatype);
        if (datatype.base == null) {
            return datatype.isObject ? MPI.UNDEFINED : 0;
        }
        long each = datatype.base.bytes;
        return bytes % each == 0 && bytes / each <= Integer.MAX_VALUE ? (int) (bytes / each) : MPI.UNDEFINED;
    }

    /** Whether the operation was cancelled. */
    public boolean Test_cancelled() throws MPIException {
        return cancelled;
    }

    // --- the names of Open MPI's bindings ---

    /** The rank of the sender. */
    public int getSource() {
        return source;
    }

    /** The tag. */
    public int getTag() {
        return tag;
    }

    /** The place of the request in the array that was waited for. */
    public int getIndex() {
        return index;
    }

    /** 0: an operation that fails throws. */
    public int getError() {
        return 0;
    }

    /** Items of the message, or UNDEFINED if it does not hold whole ones. */
    public int getCount(Datatype datatype) throws MPIException {
        return Get_count(datatype);
    }

    /** Elements of the message. */
    public int getElements(Datatype datatype) throws MPIException {
        return Get_elements(datatype);
    }

    /** Whether the operation was cancelled. */
    public boolean isCancelled() throws MPIException {
        return Test_cancelled();
    }
}
