package mpi;

import java.util.ArrayList;
import java.util.List;
import org.limosa.engine.Envelope;
import org.limosa.engine.Operation;

/**
 * A communication that may be under way. It is active until its status has been given to the program: a completion that
 * a call has seen but not returned, as {@link #Testall} does before all are complete, is kept for the next call.
 */
public class Request extends OpenMpiRequest {
    final Pending pending;
    /** The status of a completion that the program has not been given; otherwise null. */
    private Status kept;

    Request(Pending pending) {
        this.pending = pending;
    }

    final boolean isActive() {
        return kept != null || pending != null && pending.isActive();
    }

    /** Waits for the completion of an active request, and keeps its status. */
    private void complete() {
        if (kept == null) {
            kept = pending.await();
        }
    }

    /** Whether an active request is complete; keeps its status. */
    private boolean isComplete() {
        if (kept == null) {
            kept = pending.test();
        }
        return kept != null;
    }

    /** Gives the status of a completion to the program. */
    private Status take(int index) {
        Status status = kept;
        kept = null;
        status.index = index;
        return status;
    }

    /** Gives the statuses of all completions to the program; null for requests that were not active. */
    private static Status[] takeAll(Request[] requests) {
        Status[] statuses = new Status[requests.length];
        for (int i = 0; i < requests.length; i++) {
            statuses[i] = isActive(requests[i]) ? requests[i].take(i) : null;
        }
        return statuses;
    }

    /** Waits until the communication is complete. */
    public Status Wait() throws MPIException {
        if (!isActive()) {
            return new Status();
        }
        complete();
        return take(0);
    }

    /** The status if the communication is complete, otherwise null. */
    public Status Test() throws MPIException {
        if (!isActive()) {
            return new Status();
        }
        return isComplete() ? take(0) : null;
    }

    /** Asks to cancel it; wait for it afterwards. */
    public void Cancel() throws MPIException {
        if (kept == null && isActive()) {
            pending.cancel();
        }
    }

    /** Gives the request up; its communication still completes. */
    public void Free() throws MPIException {
        if (pending != null) {
            pending.free();
            kept = null;
        }
    }

    public boolean Is_null() throws MPIException {
        return pending == null || !(this instanceof Prequest) && !isActive();
    }

    private static boolean isActive(Request request) {
        return request != null && request.isActive();
    }

    /** Waits for one of them: its status, with {@code index}; UNDEFINED if none is active. */
    public static Status Waitany(Request[] requests) throws MPIException {
        Errors.present("Waitany", "the array of requests", requests);
        int place = completeAny(requests);
        return place == MPI.UNDEFINED ? new Status() : requests[place].take(place);
    }

    /** Waits for the completion of one, and keeps its status: its index, or UNDEFINED if none is active. */
    private static int completeAny(Request[] requests) {
        for (;;) {
            List<Operation> operations = new ArrayList<>();
            List<Integer> places = new ArrayList<>();
            for (int i = 0; i < requests.length; i++) {
                if (isActive(requests[i])) {
                    if (requests[i].kept != null || requests[i].pending.operation() == null) {
                        requests[i].complete();
                        return i;
                    }
                    operations.add(requests[i].pending.operation());
                    places.add(i);
                }
            }
            if (places.isEmpty()) {
                return MPI.UNDEFINED;
            }
            Envelope[] found = new Envelope[1];
            Request request = requests[places.get(MPI.engine().awaitAny(operations, found))];
            request.kept = request.pending.finish(found[0]);
        }
    }

    /** The status of one that is complete; null if none is. */
    public static Status Testany(Request[] requests) throws MPIException {
        Errors.present("Testany", "the array of requests", requests);
        boolean any = false;
        for (int i = 0; i < requests.length; i++) {
            if (isActive(requests[i])) {
                any = true;
                if (requests[i].isComplete()) {
                    return requests[i].take(i);
                }
            }
        }
        return any ? null : new Status();
    }

    /** Waits for all: their statuses, null for those that were not active. */
    public static Status[] Waitall(Request[] requests) throws MPIException {
        Errors.present("Waitall", "the array of requests", requests);
        for (Request request : requests) {
            if (isActive(request)) {
                request.complete();
            }
        }
        return takeAll(requests);
    }

    /** The statuses of all if all are complete, null for those that were not active; otherwise null for the array. */
    public static Status[] Testall(Request[] requests) throws MPIException {
        Errors.present("Testall", "the array of requests", requests);
        boolean all = true;
        for (Request request : requests) {
            all &= !isActive(request) || request.isComplete();
        }
        return all ? takeAll(requests) : null;
    }

    /** Waits until at least one is complete: the statuses of all that are; null if none is active. */
    public static Status[] Waitsome(Request[] requests) throws MPIException {
        Errors.present("Waitsome", "the array of requests", requests);
        return completeAny(requests) == MPI.UNDEFINED ? null : Testsome(requests);
    }

    /** The statuses of all that are complete; none if no one is. */
    public static Status[] Testsome(Request[] requests) throws MPIException {
        Errors.present("Testsome", "the array of requests", requests);
        for (Request request : requests) {
            if (isActive(request)) {
                request.isComplete();
            }
        }
        List<Status> all = new ArrayList<>();
        for (int i = 0; i < requests.length; i++) {
            if (requests[i] != null && requests[i].kept != null) {
                all.add(requests[i].take(i));
            }
        }
        return all.toArray(new Status[0]);
    }
}
