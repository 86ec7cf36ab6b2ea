package mpi;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.limosa.engine.Type;

/**
 * Which elements of an array make up an item of a message. All sizes and displacements are in elements of the array,
 * never in bytes (mpiJava 1.2, class Datatype).
 */
public class Datatype {
    /** What the elements are; null for objects, and for the bounds LB and UB. */
    final Type base;
    final boolean isObject;
    final String name;
    /** Where the elements of an item are, in the order in which they are sent; null for 0, 1, 2, ... */
    private final int[] places;
    private final int size;
    private final int lb;
    private final int ub;
    /** The bounds that the program has set by LB and UB. */
    private final Integer setLb;
    private final Integer setUb;

    /** A basic type. */
    Datatype(Type base, String name) {
        this(base, base == null && name.endsWith("OBJECT"), name, null, 1, 0, 1, null, null);
    }

    private Datatype(
            Type base, boolean isObject, String name, int[] places, int size, int lb, int ub, Integer setLb,
            Integer setUb) {
        this.base = base;
        this.isObject = isObject;
        this.name = name;
        this.places = places;
        this.size = size;
        this.lb = lb;
        this.ub = ub;
        this.setLb = setLb;
        this.setUb = setUb;
    }

    /** LB or UB. */
    static Datatype bound(boolean lower) {
        return new Datatype(
                null, false, lower ? "MPI.LB" : "MPI.UB", new int[0], 0, 0, 0, lower ? 0 : null, lower ? null : 0);
    }

    // --- constructors ---

    /** Consecutive items. */
    public static Datatype Contiguous(int count, Datatype oldtype) throws MPIException {
        Errors.checkType("Datatype.Contiguous", oldtype);
        return Hvector(count, 1, oldtype.Extent(), oldtype);
    }

    /** Blocks of items; the stride is in items. */
    public static Datatype Vector(int count, int blocklength, int stride, Datatype oldtype) throws MPIException {
        Errors.checkType("Datatype.Vector", oldtype);
        return Hvector(count, blocklength, Math.multiplyExact(stride, oldtype.Extent()), oldtype);
    }

    /** Blocks of items; the stride is in elements of the array. */
    public static Datatype Hvector(int count, int blocklength, int stride, Datatype oldtype) throws MPIException {
        positive("Vector", "count", count);
        positive("Vector", "blocklength", blocklength);
        int[] lengths = new int[count];
        Arrays.fill(lengths, blocklength);
        int[] starts = IntStream.range(0, count).map(i -> Math.multiplyExact(i, stride)).toArray();
        return Hindexed(lengths, starts, oldtype);
    }

    /** Blocks of different lengths; displacements are in items. */
    public static Datatype Indexed(int[] blocklengths, int[] displacements, Datatype oldtype) throws MPIException {
        Errors.checkType("Datatype.Indexed", oldtype);
        Errors.present("Datatype.Indexed", "blocklengths", blocklengths);
        Errors.present("Datatype.Indexed", "displacements", displacements);
        int extent = oldtype.Extent();
        return Hindexed(
                blocklengths, IntStream.of(displacements).map(d -> Math.multiplyExact(d, extent)).toArray(), oldtype);
    }

    /** Blocks of different lengths; displacements are in elements of the array. */
    public static Datatype Hindexed(int[] blocklengths, int[] displacements, Datatype oldtype) throws MPIException {
        Errors.checkType("Datatype.Hindexed", oldtype);
        Errors.present("Datatype.Hindexed", "blocklengths", blocklengths);
        Datatype[] types = new Datatype[blocklengths.length];
        Arrays.fill(types, oldtype);
        Datatype made = Struct(blocklengths, displacements, types);
        // No blocks at all: there is still a class of elements.
        return types.length > 0 ? made : new Datatype(
                oldtype.base, oldtype.isObject, oldtype.name, new int[0], 0, 0, 0, null, null);
    }

    /** Blocks of items of different types, all of the same class of elements. */
    public static Datatype Struct(int[] blocklengths, int[] displacements, Datatype[] types) throws MPIException {
        Errors.present("Datatype.Struct", "blocklengths", blocklengths);
        Errors.present("Datatype.Struct", "displacements", displacements);
        Errors.present("Datatype.Struct", "types", types);
        if (blocklengths.length != displacements.length || blocklengths.length != types.length) {
            throw Errors.argument("Datatype.Struct: there are " + blocklengths.length + " block lengths, "
                    + displacements.length + " displacements and " + types.length + " types; there must be as many");
        }
        Builder builder = new Builder();
        for (int i = 0; i < types.length; i++) {
            positive("Struct", "blocklengths[" + i + "]", blocklengths[i]);
            Errors.checkType("Datatype.Struct", types[i]);
            builder.add(blocklengths[i], displacements[i], types[i]);
        }
        return builder.build();
    }

    private static void positive(String function, String what, int value) {
        if (value < 0) {
            throw Errors.argument("Datatype." + function + ": " + what + " is " + value + "; it cannot be negative");
        }
    }

    /** Collects the elements and the bounds of a type. */
    private static final class Builder {
        private Datatype of;
        private int[] places = new int[8];
        private int size;
        private int lb = Integer.MAX_VALUE;
        private int ub = Integer.MIN_VALUE;
        private Integer setLb;
        private Integer setUb;

        void add(int count, int start, Datatype type) {
            boolean isBound = type.base == null && !type.isObject;
            if (!isBound) {
                if (of != null && (of.base != type.base || of.isObject != type.isObject)) {
                    throw Errors.type("Datatype.Struct: " + type.name + " and " + of.name
                            + " are in different arrays of Java, so no type holds both");
                }
                of = type;
            }
            for (int i = 0; i < count; i++) {
                int origin = Math.addExact(start, Math.multiplyExact(i, type.Extent()));
                if (type.setLb != null) {
                    setLb = setLb == null ? origin + type.setLb : Math.min(setLb, origin + type.setLb);
                }
                if (type.setUb != null) {
                    setUb = setUb == null ? origin + type.setUb : Math.max(setUb, origin + type.setUb);
                }
                for (int k = 0; k < type.size; k++) {
                    put(origin + (type.places == null ? k : type.places[k]));
                }
                if (type.size > 0) {
                    lb = Math.min(lb, origin + type.lb);
                    ub = Math.max(ub, origin + type.ub);
                }
            }
        }

        private void put(int place) {
            if (size == places.length) {
                places = Arrays.copyOf(places, 2 * size);
            }
            places[size++] = place;
        }

        Datatype build() {
            int first = setLb != null ? setLb : size == 0 ? 0 : lb;
            int last = setUb != null ? setUb : size == 0 ? 0 : ub;
            boolean dense = first == 0 && last == size;
            for (int i = 0; i < size && dense; i++) {
                dense = places[i] == i;
            }
            int[] kept = dense ? null : Arrays.copyOf(places, size);
            return new Datatype(
                    of == null ? null : of.base, of != null && of.isObject, of == null ? "no elements" : of.name,
                    kept, size, first, last, setLb, setUb);
        }
    }

    // --- what a type is ---

    /** Elements from one item to the next. */
    public int Extent() throws MPIException {
        return ub - lb;
    }

    /** Elements of an item. */
    public int Size() throws MPIException {
        return size;
    }

    /** Where an item begins. */
    public int Lb() throws MPIException {
        return lb;
    }

    /** Where an item ends. */
    public int Ub() throws MPIException {
        return ub;
    }

    /** Nothing has to be done before a type is used. */
    public void Commit() throws MPIException {}

    /** Nothing is kept for a type. */
    public void free() throws MPIException {}

    /** The same items where the elements are bytes. */
    Datatype inBytes() {
        if (base == null) {
            throw Errors.type("a struct of bytes cannot have items of " + this);
        }
        int each = base.bytes;
        int[] starts = IntStream.range(0, size).map(k -> Math.multiplyExact(place(k), each)).toArray();
        int[] lengths = new int[size];
        Arrays.fill(lengths, each);
        Datatype bytes = Hindexed(lengths, starts, MPI.BYTE);
        return createResized(bytes, lb * each, extent() * each);
    }

    /** Whether items are all the elements of a part of the array, in their order. */
    boolean isDense() {
        return places == null;
    }

    /** Where the k-th element of an item is. */
    int place(int k) {
        return places == null ? k : places[k];
    }

    int size() {
        return size;
    }

    int extent() {
        return ub - lb;
    }

    @Override
    public String toString() {
        return size == 1 && places == null ? name : name + " (" + size + " elements in " + extent() + ")";
    }

    // --- the names of Open MPI's bindings ---

    /** Consecutive items. */
    public static Datatype createContiguous(int count, Datatype oldType) throws MPIException {
        return Contiguous(count, oldType);
    }

    /** Blocks of items; the stride is in items. */
    public static Datatype createVector(int count, int blockLength, int stride, Datatype oldType)
            throws MPIException {
        return Vector(count, blockLength, stride, oldType);
    }

    /** Blocks of items; the stride is in bytes. */
    public static Datatype createHVector(int count, int blockLength, int stride, Datatype oldType)
            throws MPIException {
        return Hvector(count, blockLength, elements("createHVector", stride, oldType), oldType);
    }

    /** Blocks of different lengths; displacements are in items. */
    public static Datatype createIndexed(int[] blockLengths, int[] displacements, Datatype oldType)
            throws MPIException {
        return Indexed(blockLengths, displacements, oldType);
    }

    /** Blocks of different lengths; displacements are in bytes. */
    public static Datatype createHIndexed(int[] blockLengths, int[] displacements, Datatype oldType)
            throws MPIException {
        int[] places =
                IntStream.of(displacements).map(bytes -> elements("createHIndexed", bytes, oldType)).toArray();
        return Hindexed(blockLengths, places, oldType);
    }

    /** Blocks of items of different types in a buffer of bytes; displacements are in bytes. */
    public static Datatype createStruct(int[] blockLengths, int[] displacements, Datatype[] types)
            throws MPIException {
        Errors.present("Datatype.createStruct", "types", types);
        Datatype[] bytes = new Datatype[types.length];
        for (int i = 0; i < types.length; i++) {
            Errors.checkType("Datatype.createStruct", types[i]);
            bytes[i] = types[i].inBytes();
        }
        return Struct(blockLengths, displacements, bytes);
    }

    /** The same items with other bounds, in bytes. */
    public static Datatype createResized(Datatype oldType, int lb, int extent) throws MPIException {
        int first = elements("createResized", lb, oldType);
        int last = Math.addExact(first, elements("createResized", extent, oldType));
        return Struct(
                new int[] {1, 1, 1}, new int[] {first, 0, last}, new Datatype[] {MPI.LB, oldType, MPI.UB});
    }

    /** Bytes as elements of the arrays that hold a type. */
    private static int elements(String function, int bytes, Datatype type) {
        Errors.checkType("Datatype." + function, type);
        int each = type.base == null ? 1 : type.base.bytes;
        if (bytes % each != 0) {
            throw Errors.argument("Datatype." + function + ": " + bytes + " bytes are no whole elements of "
                    + type.name + ", which have " + each);
        }
        return bytes / each;
    }

    /** The same type. */
    public Datatype dup() throws MPIException {
        return this;
    }

    /** Elements from one item to the next. */
    public int getExtent() throws MPIException {
        return Extent();
    }

    /** Elements of an item. */
    public int getSize() throws MPIException {
        return Size();
    }

    /** Where an item begins. */
    public int getLb() throws MPIException {
        return Lb();
    }

    /** Nothing has to be done before a type is used. */
    public void commit() throws MPIException {}

    /** Whether there is no type. */
    public boolean isNull() {
        return false;
    }
}
