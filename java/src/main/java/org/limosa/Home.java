package org.limosa;

import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Engines;
import org.limosa.engine.ObjectSends;
import org.limosa.engine.local.LocalEngine;
import org.limosa.engine.local.RankLoader;
import org.limosa.run.Uncaught;

/** What the calling process, or the rank that is a thread, has once: its engine, and what goes on by itself. */
final class Home {
    private static Home only;

    final Engine engine;
    /** All ranks, for the messages of this interface alone. */
    final Communicator world;
    final ObjectSends objects = new ObjectSends();
    final Waiter waiter;
    final int largestTag;

    /** Whether the program has closed its world, and not opened it again. */
    private volatile boolean closed;
    private boolean settled;

    private Home() {
        engine = Engines.start(Home.class);
        world = engine.world().duplicate();
        world.setName("World");
        waiter = new Waiter(engine);
        largestTag = engine.largestTag();
        engine.beforeClose(this::settle);
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(this::finish, "limosa-end"));
        } catch (IllegalStateException e) {
            // Another rank, which is a thread, has called System.exit: it ends anyway.
        }
    }

    /** The first call is collective. */
    static synchronized Home get() {
        if (only == null) {
            only = new Home();
        }
        only.closed = false;
        if (only.engine instanceof LocalEngine local) {
            local.enter();
        }
        return only;
    }

    void close() {
        closed = true;
        if (engine instanceof LocalEngine local) {
            local.leave();
        }
    }

    /**
     * The end of the program. A block that is left by an exception closes its world, too: the others may be waiting
     * for messages then, so nothing that waits for them can be done before it is known that the exception was caught.
     * An exception that is not ends the job. A world that is open means {@code System.exit}.
     */
    private void finish() {
        if (closed && !Uncaught.isEnding()) {
            settle();
            if (RankLoader.engineOf(Home.class) == null) {
                engine.close();
            }
        }
    }

    /** Lets what is under way end. */
    private synchronized void settle() {
        if (!settled) {
            settled = true;
            waiter.finish();
            objects.finish();
            world.free();
        }
    }
}
