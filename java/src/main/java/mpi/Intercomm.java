package mpi;

import org.limosa.engine.Communicator;

/** Two groups of processes: messages go to the ranks of the other one. */
public class Intercomm extends Comm {
    Intercomm(Communicator communicator) {
        super(communicator);
    }

    private Intercomm(Communicator communicator, boolean isStrange) {
        super(communicator, isStrange);
    }

    /** Between the callers and processes that were started apart from them. */
    static Intercomm withOthers(Communicator communicator) {
        return new Intercomm(communicator, true);
    }

    @Override
    public Intercomm clone() throws MPIException {
        return (Intercomm) super.clone();
    }

    @Override
    public Intercomm dup() throws MPIException {
        return clone();
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

    /**
     * The communicator between the processes of the job and those that have started it by {@link Intracomm#spawn};
     * {@link #isNull} for one that was started by a launcher.
     */
    public static Intercomm getParent() throws MPIException {
        return withOthers(MPI.engine().parent());
    }

    /** One group of both. */
    public Intracomm merge(boolean high) throws MPIException {
        return Merge(high);
    }
}
