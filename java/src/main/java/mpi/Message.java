package mpi;

import org.limosa.engine.Communicator.Taken;

/** A message that was taken out of the queue, so that no other receive gets it (Open MPI's name for it). */
public final class Message {
    private Taken taken;
    private boolean isFromNobody;

    /** No message. */
    public Message() {}

    /** Whether there is none, or it was received. */
    public boolean isNull() {
        return taken == null && !isFromNobody;
    }

    /** Whether it is the message from PROC_NULL, which is empty. */
    public boolean isNoProc() {
        return isFromNobody;
    }

    /** Waits for a message and takes it. */
    public Status mProbe(int source, int tag, Comm comm) throws MPIException {
        return probe("mProbe", source, tag, comm, true);
    }

    /** As {@link #mProbe}, but null if there is none. */
    public Status imProbe(int source, int tag, Comm comm) throws MPIException {
        return probe("imProbe", source, tag, comm, false);
    }

    private Status probe(String function, int source, int tag, Comm comm, boolean waits) {
        comm.checkSource(function, source, tag);
        isFromNobody = source == MPI.PROC_NULL;
        if (isFromNobody) {
            return Status.ofNobody();
        }
        taken = comm.communicator().take(source, tag, waits);
        return taken == null ? null : new Status(taken.envelope(), null);
    }

    /** Receives it. */
    public Status mRecv(Object buf, int count, Datatype type) throws MPIException {
        if (isFromNobody) {
            isFromNobody = false;
            return Status.ofNobody();
        }
        if (taken == null) {
            throw Errors.argument("mRecv: there is no message; take one with mProbe");
        }
        if (type != null && type.isObject) {
            throw Errors.type("mRecv: objects are received by recv");
        }
        Landing landing = Landing.of("mRecv", buf, 0, count, type);
        long room = landing.memory == null ? 0 : landing.memory.byteSize();
        long bytes = taken.envelope().bytes();
        if (bytes > room) {
            throw Errors.truncated("mRecv: the message has " + bytes + " bytes, the buffer only " + room);
        }
        Status status = new Status(taken.envelope(), type);
        taken.receive(landing.memory == null ? Landing.nothing() : landing.memory.asSlice(0, bytes));
        taken = null;
        landing.finish("mRecv", bytes);
        return status;
    }

    /** As {@link #mRecv}: the message is there, so that nothing has to be waited for. */
    public Request imRecv(Object buf, int count, Datatype type) throws MPIException {
        return new Request(new Pending.Complete(mRecv(buf, count, type)));
    }
}
