package org.limosa.run;

import java.util.Arrays;
import java.util.Set;
import mpi.MPIException;
import org.limosa.LimosaException;
import org.limosa.abi.Abi;

/** Shows exceptions that nothing has caught, and ends the job because of them. */
public final class Uncaught {
    /**
     * How long a rank that fails because another has died leaves it to the launcher to say so, in milliseconds. It does
     * so at once, unless the machine is very busy, or the dead rank is of another job.
     */
    private static final long TIME_OF_LAUNCHER = 10000;

    /** How long the shutdown hooks of a program may take, in milliseconds. */
    private static final long TIME_OF_HOOKS = 2000;

    /** The threads when the machine began to end because of an exception; null before. Later ones are its hooks. */
    private static volatile Set<Thread> atEnd;

    private Uncaught() {}

    /** Whether the machine ends because of an exception: other ranks will take no more part in anything. */
    public static boolean isEnding() {
        return atEnd != null;
    }

    /**
     * Shows the first exception that nothing has caught, with its rank if there is one, and ends this process, and so
     * the job: the shutdown hooks of the program run first, but not for long. Exceptions of hooks are shown, too.
     */
    public static void end(String rank, Thread thread, Throwable thrown, int code, Runnable abort) {
        leaveToLauncher(rank, thrown);
        synchronized (Uncaught.class) {
            if (isEnding()) {
                if (!thread.isVirtual() && !atEnd.contains(thread)) {
                    show(rank, thread, thrown);
                    return;
                }
            } else {
                show(rank, thread, thrown);
                atEnd = Thread.getAllStackTraces().keySet();
                Thread.ofPlatform().daemon().name("limosa-end-limit").start(() -> endAfterHooks(code, abort));
            }
        }
        // All but the first wait here for the end.
        System.exit(code);
    }

    private static void endAfterHooks(int code, Runnable abort) {
        try {
            Thread.sleep(TIME_OF_HOOKS);
            System.err.println("limosa: the shutdown hooks have not ended after " + TIME_OF_HOOKS / 1000 + " s");
            abort.run();
        } catch (InterruptedException e) {
            // No thread interrupts this one.
        } finally {
            Runtime.getRuntime().halt(code);
        }
    }

    /** Waits for the launcher to end this process, if the exception says that another rank has died. */
    private static void leaveToLauncher(String rank, Throwable thrown) {
        if (rank != null && isAboutADeadRank(thrown)) {
            try {
                Thread.sleep(TIME_OF_LAUNCHER);
            } catch (InterruptedException e) {
                // Then it is said now.
            }
        }
    }

    /** Whether an exception, or one that has caused it, says that another rank has died. */
    private static boolean isAboutADeadRank(Throwable thrown) {
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            if (each instanceof MPIException e && e.getErrorClass() == Abi.MPI_ERR_PROC_ABORTED
                    || each instanceof LimosaException l && l.errorClass() == Abi.MPI_ERR_PROC_ABORTED) {
                return true;
            }
        }
        return false;
    }

    /** Shows an exception with its rank, or without one if that is null. */
    private static void show(String rank, Thread thread, Throwable thrown) {
        System.out.flush();
        System.err.println("limosa: " + (rank == null ? "" : rank + ": ")
                + "an exception that nothing has caught, in thread " + thread.getName() + ":");
        hideOwn(thrown).printStackTrace();
        if (isBeforeInit(thrown)) {
            System.err.println("hint: communicators are there between MPI.Init and MPI.Finalize");
        }
        System.err.flush();
    }

    /** Whether a program has used MPI.COMM_WORLD where it is null. */
    private static boolean isBeforeInit(Throwable thrown) {
        return thrown instanceof NullPointerException && thrown.getMessage() != null
                && thrown.getMessage().contains("\"mpi.MPI.COMM_");
    }

    /** Without the frames below the program's. */
    private static Throwable hideOwn(Throwable thrown) {
        StackTraceElement[] frames = thrown.getStackTrace();
        int kept = 0;
        while (kept < frames.length && !frames[kept].getClassName().equals(Start.class.getName())) {
            kept++;
        }
        if (kept < frames.length) {
            while (kept > 0 && isReflection(frames[kept - 1].getClassName())) {
                kept--;
            }
            thrown.setStackTrace(Arrays.copyOf(frames, kept == 0 ? frames.length : kept));
        }
        return thrown;
    }

    private static boolean isReflection(String name) {
        return name.startsWith("java.lang.reflect.") || name.startsWith("jdk.internal.reflect.")
                || name.startsWith("java.lang.invoke.");
    }
}
