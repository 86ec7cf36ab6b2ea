package mpi;

/** A communication that can be started again and again. */
public class Prequest extends Request {
    Prequest(Pending pending) {
        super(pending);
    }

    public void Start() throws MPIException {
        if (isActive()) {
            throw Errors.argument("Start: the request is active");
        }
        pending.start();
    }

    public static void Startall(Prequest[] requests) throws MPIException {
        for (Prequest request : Errors.present("Startall", "the array of requests", requests)) {
            Errors.present("Startall", "a request", request).Start();
        }
    }

    // --- the names of Open MPI's bindings ---

    /** As {@link #Start}. */
    public final void start() throws MPIException {
        Start();
    }

    /** As {@link #Startall}. */
    public static void startAll(Prequest[] requests) throws MPIException {
        Startall(requests);
    }
}
