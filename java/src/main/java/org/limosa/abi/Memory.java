package org.limosa.abi;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Native memory that lives until it is freed. */
public final class Memory {
    private static final MethodHandle MALLOC = Link.function("malloc", "al");
    private static final MethodHandle FREE = Link.function("free", "va");

    private Memory() {}

    /** Memory that is not cleared. */
    public static MemorySegment allocate(long bytes) {
        try {
            MemorySegment memory = (MemorySegment) MALLOC.invokeExact(bytes);
            if (memory.address() == 0) {
                throw new OutOfMemoryError("there are no " + bytes + " bytes of native memory");
            }
            return memory.reinterpret(bytes);
        } catch (Throwable thrown) {
            throw Link.failed(thrown);
        }
    }

    /** Frees what {@link #allocate} has returned. */
    public static void free(MemorySegment memory) {
        try {
            FREE.invokeExact(memory);
        } catch (Throwable thrown) {
            throw Link.failed(thrown);
        }
    }
}
