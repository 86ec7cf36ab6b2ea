package org.limosa.engine;

import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.library.LibraryEngine;
import org.limosa.engine.local.LocalEngine;
import org.limosa.engine.local.RankLoader;

/** Chooses what carries the messages. */
public final class Engines {
    private Engines() {}

    /** What carries the messages of the rank to which a class belongs. */
    public static Engine start(Class<?> caller) {
        LocalEngine local = RankLoader.engineOf(caller);
        if (local != null) {
            local.enter();
            return local;
        }
        String problem = LibraryEngine.problem();
        if (problem != null) {
            throw MPIException.of(Abi.MPI_ERR_OTHER, "there is no MPI library: " + problem
                    + "; start the program with \"limosa run\", or name the library in LIMOSA_LIBRARY");
        }
        return LibraryEngine.start();
    }
}
