package org.limosa.abi;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Finds and links the functions of the MPI library.
 *
 * <p>The library is what {@code dlopen} finds as {@code libmpi_abi.so.1}, or the file that the property
 * {@code limosa.library} or the variable {@code JAVA_LIMOSA_LIBRARY} names. Symbols are looked up in the whole process,
 * so that a library which was loaded before, such as a profiler, comes first.
 */
public final class Link {
    private static final String NAME = "libmpi_abi.so.1";
    /** A function that only libraries with the standard ABI have. */
    private static final String MARK = "MPI_Abi_get_version";
    private static final int RTLD_NOW = 2;
    private static final int RTLD_GLOBAL = 0x100;
    private static final Linker LINKER = Linker.nativeLinker();

    private Link() {}

    private static final class Loader {
        /** Null where the system has no such function, and so no library of MPI either. */
        static final MethodHandle DLSYM = LINKER.defaultLookup().find("dlsym").isPresent() ? own("dlsym", "aaa") : null;
        static final String PROBLEM = open();

        private static String open() {
            String name = chosen() == null ? NAME : chosen();
            if (DLSYM == null) {
                return name + ": this system has no function dlsym";
            }
            try (Arena arena = Arena.ofConfined()) {
                MethodHandle dlopen = own("dlopen", "aai");
                // Looked up before: looking something up ends what it has to say.
                MethodHandle dlerror = own("dlerror", "a");
                MemorySegment library =
                        (MemorySegment) dlopen.invokeExact(arena.allocateFrom(name), RTLD_NOW | RTLD_GLOBAL);
                if (library.address() != 0) {
                    return hasAbi(arena) ? null : name + " is no MPI library with the standard ABI: it has no function "
                            + MARK;
                }
                MemorySegment text = (MemorySegment) dlerror.invokeExact();
                return text.address() == 0 ? name : text.reinterpret(Long.MAX_VALUE).getString(0);
            } catch (Throwable thrown) {
                throw failed(thrown);
            }
        }

        private static boolean hasAbi(Arena arena) throws Throwable {
            MemorySegment found = (MemorySegment) DLSYM.invokeExact(MemorySegment.NULL, arena.allocateFrom(MARK));
            return found.address() != 0;
        }

        private static MethodHandle own(String function, String letters) {
            return LINKER.downcallHandle(LINKER.defaultLookup().find(function).orElseThrow(), descriptor(letters));
        }
    }

    /** The library that the user has named; null if it is {@link #NAME}. */
    public static String chosen() {
        String chosen = System.getProperty("limosa.library", System.getenv("JAVA_LIMOSA_LIBRARY"));
        return chosen == null || chosen.isEmpty() ? null : chosen;
    }

    /** Why there is no MPI library; null if there is one. */
    public static String problem() {
        return Loader.PROBLEM;
    }

    /** Links a function. The letters are those of its result and arguments: i, l, d, a(ddress), v(oid). */
    static MethodHandle function(String name, String letters) {
        if (problem() != null) {
            throw new UnsatisfiedLinkError(problem());
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment address =
                    (MemorySegment) Loader.DLSYM.invokeExact(MemorySegment.NULL, arena.allocateFrom(name));
            if (address.address() == 0) {
                throw new UnsatisfiedLinkError("the MPI library has no function " + name);
            }
            return LINKER.downcallHandle(address, descriptor(letters));
        } catch (Throwable thrown) {
            throw failed(thrown);
        }
    }

    private static FunctionDescriptor descriptor(String letters) {
        MemoryLayout[] arguments =
                letters.chars().skip(1).mapToObj(letter -> layout((char) letter)).toArray(MemoryLayout[]::new);
        char result = letters.charAt(0);
        return result == 'v'
                ? FunctionDescriptor.ofVoid(arguments)
                : FunctionDescriptor.of(layout(result), arguments);
    }

    private static MemoryLayout layout(char letter) {
        return switch (letter) {
            case 'i' -> ValueLayout.JAVA_INT;
            case 'l' -> ValueLayout.JAVA_LONG;
            case 'd' -> ValueLayout.JAVA_DOUBLE;
            case 'a' -> ValueLayout.ADDRESS;
            default -> throw new IllegalArgumentException("no layout for " + letter);
        };
    }

    /** What a call has thrown; functions of C throw nothing, so it is an error of the link. */
    static RuntimeException failed(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        if (thrown instanceof RuntimeException exception) {
            throw exception;
        }
        throw new IllegalStateException(thrown);
    }
}
