package org.limosa.engine.local;

import java.util.List;
import java.util.Map;
import org.limosa.engine.Trees;

/** What the frames of a thread say: the line of the program, and the call of an interface that it has made. */
public final class Frames {
    private static final List<String> OF_JAVA = List.of("java.", "javax.", "jdk.", "sun.", "com.sun.");
    private static final List<String> OF_LIMOSA = List.of("mpi.", "org.limosa.");
    /** The classes whose methods the program calls by the name of another class. */
    private static final Map<String, String> KNOWN_AS = Map.of(
            "OpenMpiComm", "Comm", "OpenMpiRequest", "Request", "OpenMpiNames", "MPI", "Messages", "Comm",
            "Collectives", "Comm", "Reductions", "Comm");
    private static final String OF_WORLD = "World";

    private Frames() {}

    private static boolean isOf(List<String> packages, StackTraceElement frame) {
        return packages.stream().anyMatch(frame.getClassName()::startsWith);
    }

    /** The innermost frame of the program; the number of frames if there is none. */
    private static int own(StackTraceElement[] stack) {
        int at = 0;
        while (at < stack.length && (isOf(OF_JAVA, stack[at]) || isOf(OF_LIMOSA, stack[at]))) {
            at++;
        }
        return at;
    }

    /** The innermost line of the program: {@code FILE:LINE in CLASS.METHOD}; null if there is none. */
    public static String line(StackTraceElement[] stack) {
        int at = own(stack);
        return at == stack.length ? null : stack[at].getFileName() + ":" + stack[at].getLineNumber() + " in "
                + stack[at].getClassName() + "." + stack[at].getMethodName();
    }

    /** The frame of the call that the program has made; null if it is not known. */
    private static StackTraceElement called(StackTraceElement[] stack) {
        int at = own(stack) - 1;
        while (at >= 0 && !isOf(OF_LIMOSA, stack[at])) {
            at--;
        }
        return at < 0 ? null : stack[at];
    }

    /** The call that the program has made: {@code Comm.Recv}. */
    static String call(StackTraceElement[] stack, String communicator) {
        StackTraceElement frame = called(stack);
        if (frame == null) {
            return "a call";
        }
        String name = frame.getClassName();
        String simple = name.substring(name.lastIndexOf('.') + 1);
        String known = KNOWN_AS.getOrDefault(simple, simple);
        boolean isOfWorld = known.equals("Comm") && communicator.equals(OF_WORLD);
        return (isOfWorld ? OF_WORLD : known) + "." + frame.getMethodName();
    }

    /** The interface that the program has called. */
    static HangHint.Language language(StackTraceElement[] stack) {
        StackTraceElement frame = called(stack);
        if (frame == null || frame.getClassName().startsWith("org.limosa.")) {
            return HangHint.Language.LIMOSA;
        }
        return Character.isLowerCase(frame.getMethodName().charAt(0)) ? HangHint.Language.OPEN_MPI
                : HangHint.Language.MPI;
    }

    /** Whether a message is a part of a collective operation. */
    static boolean isCollective(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getClassName().equals(Trees.class.getName())) {
                return true;
            }
        }
        return false;
    }
}
