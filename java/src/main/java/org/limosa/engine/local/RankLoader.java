package org.limosa.engine.local;

import java.net.URL;
import java.net.URLClassLoader;

/**
 * Loads the program's classes and the packages mpi and org.limosa anew for each rank that is a thread, so that their
 * static fields are its own. What carries the messages is common to all.
 */
public final class RankLoader extends URLClassLoader {
    static {
        registerAsParallelCapable();
    }

    private static final String OWN = "org.limosa.";

    private final LocalEngine engine;

    public RankLoader(URL[] paths, ClassLoader parent, LocalEngine engine) {
        super(paths, parent);
        this.engine = engine;
    }

    /** What carries the messages of a class's rank; null if that is no thread. */
    public static LocalEngine engineOf(Class<?> type) {
        return type.getClassLoader() instanceof RankLoader loader ? loader.engine : null;
    }

    /** Whether all ranks of a machine have the same class. */
    public static boolean isShared(Class<?> type) {
        ClassLoader loader = type.getClassLoader();
        return loader == null || loader == ClassLoader.getPlatformClassLoader()
                || loader == ClassLoader.getSystemClassLoader();
    }

    /** The package org.limosa itself is the interface for programs, as mpi is; the packages below it are common. */
    private static boolean isCommon(String name) {
        return name.startsWith("java.") || name.equals("mpi.MPIException")
                || name.startsWith(OWN) && name.indexOf('.', OWN.length()) >= 0;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (isCommon(name)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> found = findLoadedClass(name);
            if (found == null) {
                try {
                    found = findClass(name);
                } catch (ClassNotFoundException e) {
                    return super.loadClass(name, resolve);
                }
            }
            if (resolve) {
                resolveClass(found);
            }
            return found;
        }
    }
}
