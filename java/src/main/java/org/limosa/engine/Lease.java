package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.MemorySegment.Scope;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Set;

/**
 * Keeps arenas open while operations use their native memory: {@code Arena.close} throws an exception until the last
 * lease has ended. Java does so during a call of a native function, but has no interface for what goes on after it, so
 * this needs the option {@link #EXPORT} of Java, which the launchers of Limosa give. Without it, operations copy the
 * memory of arenas that can be closed ({@link #canHold}).
 */
public final class Lease {
    /** The option of Java that makes its own leases usable. */
    public static final String EXPORT = "--add-exports=java.base/jdk.internal.foreign=ALL-UNNAMED";

    private static final String SESSION = "jdk.internal.foreign.MemorySessionImpl";
    /** Simple names of the classes of scopes that no program can close. */
    private static final Set<String> NEVER_CLOSED = Set.of("GlobalSession", "HeapSession", "ImplicitSession");
    /** Null where the package is not exported. */
    private static final MethodHandle ACQUIRE = ofSession("acquire0");
    private static final MethodHandle RELEASE = ofSession("release0");

    private Lease() {}

    private static MethodHandle ofSession(String method) {
        try {
            return MethodHandles.lookup().findVirtual(
                            Class.forName(SESSION), method, MethodType.methodType(void.class))
                    .asType(MethodType.methodType(void.class, Scope.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    /** Whether memory stays valid between {@link #begin} and {@link #end}. */
    public static boolean canHold(MemorySegment data) {
        return ACQUIRE != null || NEVER_CLOSED.contains(data.scope().getClass().getSimpleName());
    }

    /** Keeps the arena of native memory open; an exception if it is closed. */
    public static void begin(MemorySegment data) {
        call(ACQUIRE, data);
    }

    /** Ends what {@link #begin} has begun, in any thread. */
    public static void end(MemorySegment data) {
        call(RELEASE, data);
    }

    private static void call(MethodHandle method, MemorySegment data) {
        if (method == null || !data.isNative()) {
            return;
        }
        try {
            method.invokeExact(data.scope());
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
