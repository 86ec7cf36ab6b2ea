package mpi;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Values that a program attaches to a communicator, in Open MPI's form: copies of the communicator have them, too. */
abstract class OpenMpiAttributes extends OpenMpiNeighbours {
    /** Keys begin behind those of mpiJava's predefined attributes. */
    private static final int BEFORE = 1000;
    private static final AtomicInteger KEYS = new AtomicInteger(BEFORE);

    private final Map<Integer, Object> values = new ConcurrentHashMap<>();

    OpenMpiAttributes() {}

    final void copyAttributes(OpenMpiAttributes from) {
        values.putAll(from.values);
    }

    /** A key that no other attribute has. */
    public static int createKeyval() throws MPIException {
        return KEYS.incrementAndGet();
    }

    /** Gives a key up: what has it keeps its value. */
    public static void freeKeyval(int keyval) throws MPIException {
        checkKey("freeKeyval", keyval);
    }

    private static void checkKey(String function, int keyval) {
        if (keyval <= BEFORE || keyval > KEYS.get()) {
            throw Errors.argument(function + ": " + keyval + " is no key of createKeyval");
        }
    }

    /** Sets the value of an attribute. */
    public final void setAttr(int keyval, Object value) throws MPIException {
        ((Comm) this).communicator();
        checkKey("setAttr", keyval);
        values.put(keyval, Errors.present("setAttr", "the value", value));
    }

    /** The value of an attribute, or of {@code MPI.TAG_UB}, {@code HOST} or {@code IO}; null if it has none. */
    public final Object getAttr(int keyval) throws MPIException {
        Comm comm = (Comm) this;
        comm.communicator();
        boolean isPredefined = keyval == MPI.TAG_UB || keyval == MPI.HOST || keyval == MPI.IO;
        return isPredefined ? comm.Attr_get(keyval) : values.get(keyval);
    }

    /** Takes the value of an attribute away. */
    public final void deleteAttr(int keyval) throws MPIException {
        ((Comm) this).communicator();
        checkKey("deleteAttr", keyval);
        if (values.remove(keyval) == null) {
            throw Errors.argument("deleteAttr: the attribute " + keyval + " has no value");
        }
    }
}
