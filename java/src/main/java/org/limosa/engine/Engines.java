package org.limosa.engine;

import org.limosa.engine.library.LibraryEngine;
import org.limosa.engine.local.RankLoader;

/** Chooses what carries the messages. */
public final class Engines {
    private Engines() {}

    /** What carries the messages of the rank to which a class belongs. */
    public static Engine start(Class<?> caller) {
        Engine local = RankLoader.engineOf(caller);
        if (local != null) {
            return local;
        }
        String problem = LibraryEngine.problem();
        if (problem != null) {
            return Alone.start(problem, LibraryEngine.chosen());
        }
        return LibraryEngine.start();
    }
}
