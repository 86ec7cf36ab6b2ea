package org.limosa.engine;

import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.library.LibraryEngine;
import org.limosa.engine.local.LocalEngine;
import org.limosa.engine.local.RankLoader;

/** Chooses what carries the messages. */
public final class Engines {
    private Engines() {}

    /** The exception of what only the MPI library can do. */
    public static MPIException needsLibrary(String function, String instead) {
        return MPIException.of(Abi.MPI_ERR_UNSUPPORTED_OPERATION, function
                + ": this needs the MPI library, but here Java carries the messages; run the program with ranks that "
                + "are processes (\"limosa run\" without --threads), or " + instead);
    }

    /** What carries the messages of the rank to which a class belongs. */
    public static Engine start(Class<?> caller) {
        LocalEngine local = RankLoader.engineOf(caller);
        if (local != null) {
            local.enter();
            return local;
        }
        String problem = LibraryEngine.problem();
        if (problem != null) {
            return Alone.start(problem, LibraryEngine.chosen());
        }
        return LibraryEngine.start();
    }
}
