package mpi;

import java.util.ArrayList;
import java.util.List;
import org.limosa.engine.Envelope;
import org.limosa.engine.Operation;

/** A communication that may be under way. */
public class Request extends OpenMpiRequest {
    final Pending pending;

    Request(Pending pending) {
        this.pending = pending;
    }

    final boolean isActive() {
        return pending != null && pending.isActive();
    }

    private static Status at(int index, Status status) {
        status.index = index;
        return status;
    }

    /** Waits until the communication is complete. */
    public Status Wait() throws MPIException {
        return isActive() ? at(0, pending.await()) : new Status();
    }

    /** The status if the communication is complete, otherwise null. */
    public Status Test() throws MPIException {
        if (!isActive()) {
            return new Status();
        }
        Status status = pending.test();
        return status == null ? null : at(0, status);
    }

    /** Asks to cancel it; wait for it afterwards. */
    public void Cancel() throws MPIException {
        if (isActive()) {
            pending.cancel();
        }
    }

    /** Gives the request up; its communication still completes. */
    public void Free() throws MPIException {
        if (pending != null) {
            pending.free();
        }
    }

    public boolean Is_null() throws MPIException {
        return pending == null || !(this instanceof Prequest) && !pending.isActive();
    }

    private static boolean isActive(Request request) {
        return request != null && request.isActive();
    }

    /** Waits for one of them: its status, with {@code index}; UNDEFINED if none is active. */
    public static Status Waitany(Request[] requests) throws MPIException {
        Errors.present("Waitany", "the array of requests", requests);
        for (;;) {
            List<Operation> operations = new ArrayList<>();
            List<Integer> places = new ArrayList<>();
            for (int i = 0; i < requests.length; i++) {
                if (isActive(requests[i])) {
                    if (requests[i].pending.operation() == null) {
                        return at(i, requests[i].pending.await());
                    }
                    operations.add(requests[i].pending.operation());
                    places.add(i);
                }
            }
            if (places.isEmpty()) {
                return new Status();
            }
            Envelope[] found = new Envelope[1];
            int place = places.get(MPI.engine().awaitAny(operations, found));
            Status status = requests[place].pending.finish(found[0]);
            if (status != null) {
                return at(place, status);
            }
        }
    }

    /** The status of one that is complete; null if none is. */
    public static Status Testany(Request[] requests) throws MPIException {
        Errors.present("Testany", "the array of requests", requests);
        boolean any = false;
        for (int i = 0; i < requests.length; i++) {
            if (isActive(requests[i])) {
                any = true;
                Status status = requests[i].pending.test();
                if (status != null) {
                    return at(i, status);
                }
            }
        }
        return any ? null : new Status();
    }

    /** Waits for all: their statuses, null for those that were not active. */
    public static Status[] Waitall(Request[] requests) throws MPIException {
        Errors.present("Waitall", "the array of requests", requests);
        Status[] statuses = new Status[requests.length];
        for (int i = 0; i < requests.length; i++) {
            statuses[i] = isActive(requests[i]) ? at(i, requests[i].pending.await()) : null;
        }
        return statuses;
    }

    /** The statuses of all if all are complete, otherwise null. */
    public static Status[] Testall(Request[] requests) throws MPIException {
        Errors.present("Testall", "the array of requests", requests);
        Status[] statuses = new Status[requests.length];
        boolean all = true;
        for (int i = 0; i < requests.length; i++) {
            Request request = requests[i];
            if (!isActive(request)) {
                statuses[i] = request == null ? null : request.found;
                continue;
            }
            Status status = request.pending.test();
            request.found = status;
            statuses[i] = status;
            all &= status != null;
        }
        if (!all) {
            return null;
        }
        for (int i = 0; i < requests.length; i++) {
            if (requests[i] != null) {
                requests[i].found = null;
                if (statuses[i] != null) {
                    at(i, statuses[i]);
                }
            }
        }
        return statuses;
    }

    /** What Testall has found of a request before all were complete. */
    private Status found;

    /** Waits until at least one is complete: the statuses of all that are; null if none is active. */
    public static Status[] Waitsome(Request[] requests) throws MPIException {
        Errors.present("Waitsome", "the array of requests", requests);
        Status first = Waitany(requests);
        if (first.index == MPI.UNDEFINED) {
            return null;
        }
        List<Status> all = new ArrayList<>(List.of(first));
        all.addAll(List.of(Testsome(requests)));
        return all.toArray(new Status[0]);
    }

    /** The statuses of all that are complete; none if no one is. */
    public static Status[] Testsome(Request[] requests) throws MPIException {
        Errors.present("Testsome", "the array of requests", requests);
        List<Status> all = new ArrayList<>();
        for (int i = 0; i < requests.length; i++) {
            if (isActive(requests[i])) {
                Status status = requests[i].pending.test();
                if (status != null) {
                    all.add(at(i, status));
                }
            }
        }
        return all.toArray(new Status[0]);
    }
}
