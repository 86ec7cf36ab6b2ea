package mpi;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Pairs of keys and values: hints for the library (MPI-5, section 10), in the form of Open MPI's bindings. */
public final class Info {
    private Map<String, String> values = new LinkedHashMap<>();

    /** One without pairs. */
    public Info() {}

    static Info none() {
        Info none = new Info();
        none.values = null;
        return none;
    }

    /** The pairs; none if there is no Info. */
    static Map<String, String> pairs(Info info) {
        return info == null || info.values == null ? Map.of() : info.values;
    }

    private Map<String, String> values() {
        if (values == null) {
            throw Errors.argument("the Info was freed, or is MPI.INFO_NULL");
        }
        return values;
    }

    /** Sets the value of a key. */
    public void set(String key, String value) throws MPIException {
        values().put(key, value);
    }

    /** The value of a key; null if it has none. */
    public String get(String key) throws MPIException {
        return values().get(key);
    }

    /** Removes a key. */
    public void delete(String key) throws MPIException {
        if (values().remove(key) == null) {
            throw Errors.argument("Info.delete: there is no key " + key);
        }
    }

    /** The number of keys. */
    public int size() throws MPIException {
        return values().size();
    }

    /** The i-th key. */
    public String getKey(int i) throws MPIException {
        List<String> keys = new ArrayList<>(values().keySet());
        if (i < 0 || i >= keys.size()) {
            throw Errors.argument("Info.getKey: there is no key " + i + " of " + keys.size());
        }
        return keys.get(i);
    }

    /** One with the same pairs. */
    public Info dup() throws MPIException {
        Info copy = new Info();
        copy.values.putAll(values());
        return copy;
    }

    /** Whether it was freed. */
    public boolean isNull() {
        return values == null;
    }

    /** Gives it up. */
    public void free() throws MPIException {
        values = null;
    }
}
