package org.limosa.run;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import mpi.MPI;
import org.limosa.engine.Arguments;

/**
 * Runs a program as a rank: {@code java org.limosa.run.Start MAIN-CLASS ARGUMENTS...}. An exception that nothing
 * catches, in any thread, is shown with the rank and ends the job.
 */
public final class Start {
    private static final int FAILED = 1;

    private Start() {}

    public static void main(String[] args) {
        if (args.length == 0) {
            System.err.println("usage: java org.limosa.run.Start MAIN-CLASS [ARGUMENTS]...");
            System.exit(2);
        }
        String rank = System.getenv("LIMOSA_RANK");
        Thread.setDefaultUncaughtExceptionHandler(
                (thread, thrown) -> fail(rank == null ? null : "rank " + rank, thread, thrown, FAILED));
        String[] own = Arrays.copyOfRange(args, 1, args.length);
        run(args[0], Arguments.given(own, number(rank), number(System.getenv("LIMOSA_SIZE"))));
    }

    private static int number(String text) {
        return text == null ? 0 : Integer.parseInt(text);
    }

    /** Runs a class in the calling thread; an exception of it goes to the thread's handler. */
    static void run(String name, String[] args) {
        try {
            invoke(find(name), args);
        } catch (InvocationTargetException e) {
            Thread thread = Thread.currentThread();
            handler(thread).uncaughtException(thread, e.getCause());
        } catch (ReflectiveOperationException | LinkageError e) {
            synchronized (Start.class) {
                // All ranks that are threads have the same reason, which the first one says.
                System.err.println("limosa: the class " + name + " cannot be run: " + e);
                Runtime.getRuntime().halt(FAILED);
            }
        }
    }

    private static Thread.UncaughtExceptionHandler handler(Thread thread) {
        // A thread group, which a rank that is a thread has, comes before the default.
        Thread.UncaughtExceptionHandler own = thread.getUncaughtExceptionHandler();
        boolean isPlain = own instanceof ThreadGroup group && group.getClass() == ThreadGroup.class;
        return isPlain ? Thread.getDefaultUncaughtExceptionHandler() : own;
    }

    /** The main method of a class, as Java's own launcher finds it. */
    static Method find(String name) throws ReflectiveOperationException {
        Class<?> type = Class.forName(name, true, Thread.currentThread().getContextClassLoader());
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Class<?>[] parameters : new Class<?>[][] {{String[].class}, {}}) {
                try {
                    Method found = each.getDeclaredMethod("main", parameters);
                    if (!Modifier.isPrivate(found.getModifiers())) {
                        found.setAccessible(true);
                        return found;
                    }
                } catch (NoSuchMethodException e) {
                    // The other form, or that of the superclass.
                }
            }
        }
        throw new NoSuchMethodException("it has no method main");
    }

    static void invoke(Method main, String[] args) throws ReflectiveOperationException {
        Object instance = null;
        if (!Modifier.isStatic(main.getModifiers())) {
            Constructor<?> constructor = main.getDeclaringClass().getDeclaredConstructor();
            constructor.setAccessible(true);
            instance = constructor.newInstance();
        }
        if (main.getParameterCount() == 0) {
            main.invoke(instance);
        } else {
            main.invoke(instance, (Object) args);
        }
    }

    /** Shows an exception that nothing has caught, and ends the job. */
    static void fail(String rank, Thread thread, Throwable thrown, int code) {
        Uncaught.end(rank, thread, thrown, code, () -> {
            if (MPI.Initialized()) {
                MPI.COMM_WORLD.Abort(code);
            }
        });
    }
}
