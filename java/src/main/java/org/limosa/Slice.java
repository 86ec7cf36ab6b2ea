package org.limosa;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Supplier;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Type;

/** A part of an array or buffer, or memory with elements of a type. It can be passed wherever a buffer can. */
public final class Slice {
    private final Object buffer;
    private final Elements elements;

    private Slice(Object buffer, Elements elements) {
        this.buffer = buffer;
        this.elements = elements;
    }

    Elements elements() {
        return elements.again();
    }

    /**
     * A part of a buffer.
     *
     * @param buffer an array of a primitive type, a buffer of {@code java.nio} or a memory segment
     * @param offset the first element, counted from 0
     * @param length the number of elements
     * @return the part, which is the buffer's own memory
     * @throws Errors.BufferException if the part is not inside the buffer
     * @throws Errors.DatatypeException if the buffer is of another class
     */
    public static Slice of(Object buffer, int offset, int length) {
        Elements all = told(() -> Elements.of(buffer));
        if (all == null) {
            throw Errors.of(Abi.MPI_ERR_TYPE, "Slice.of: " + Elements.notBuffer(buffer), null);
        }
        if (offset < 0 || length < 0 || (long) offset + length > all.count()) {
            throw Errors.of(Abi.MPI_ERR_BUFFER, "Slice.of: " + length + " elements from offset " + offset
                    + " on are not inside the buffer, which has " + all.count(), null);
        }
        return new Slice(buffer, all.part(offset, length));
    }

    /**
     * Memory with elements of a type.
     *
     * @param memory the memory, in the byte order of the processor
     * @param layout what an element is, such as {@code ValueLayout.JAVA_DOUBLE}
     * @return the elements
     * @throws Errors.BufferException if the memory does not hold whole elements
     * @throws Errors.DatatypeException if the layout is none of Java's primitive types
     */
    public static Slice of(MemorySegment memory, ValueLayout layout) {
        Type type = Elements.type(layout.carrier());
        if (type == null || type == Type.BOOLEAN) {
            throw Errors.of(Abi.MPI_ERR_TYPE, "Slice.of: elements of layout " + layout + " cannot be sent", null);
        }
        if (memory.byteSize() % type.bytes != 0) {
            throw Errors.of(Abi.MPI_ERR_BUFFER, "Slice.of: the memory has " + memory.byteSize()
                    + " bytes, but an element has " + type.bytes, null);
        }
        return new Slice(memory, told(() -> new Elements(memory, type, null, 0)));
    }

    private static Elements told(Supplier<Elements> made) {
        try {
            return made.get();
        } catch (MPIException e) {
            throw Messages.told("Slice.of", e);
        }
    }

    @Override
    public String toString() {
        return elements.count() + " elements of " + buffer.getClass().getTypeName();
    }
}
