package org.limosa.run;

import java.util.Arrays;
import mpi.MPIException;
import org.limosa.LimosaException;
import org.limosa.abi.Abi;

/** Shows exceptions that nothing has caught. */
public final class Uncaught {
    /**
     * How long a rank that fails because another has died leaves it to the launcher to say so, in milliseconds. It does
     * so at once, unless the machine is very busy, or the dead rank is of another job.
     */
    private static final long TIME_OF_LAUNCHER = 10000;

    private Uncaught() {}

    /** Waits for the launcher to end this process, if the exception says that another rank has died. */
    public static void leaveToLauncher(String rank, Throwable thrown) {
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
    public static void show(String rank, Thread thread, Throwable thrown) {
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
