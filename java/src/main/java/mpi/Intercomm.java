package mpi;

import org.limosa.engine.Communicator;

/** Two groups of processes: messages go to the ranks of the other one. */
public class Intercomm extends Comm {
    Intercomm(Communicator communicator) {
        super(communicator);
    }

    @Override
    Comm with(Communicator other) {
        return new Intercomm(other);
    }

    public int Remote_size() throws MPIException {
        return communicator().remoteSize();
    }

    public Group Remote_group() throws MPIException {
        return new Group(communicator().remoteMembers());
    }

    /** One group of both; the one that says high comes second. */
    public Intracomm Merge(boolean high) throws MPIException {
        return new Intracomm(communicator().merge(high));
    }

    // --- the names of Open MPI's bindings ---

    /** The number of processes of the other group. */
    public int getRemoteSize() throws MPIException {
        return Remote_size();
    }

    /** The other group. */
    public Group getRemoteGroup() throws MPIException {
        return Remote_group();
    }

    /** One group of both. */
    public Intracomm merge(boolean high) throws MPIException {
        return Merge(high);
    }
}
