package org.limosa.run;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.limosa.engine.Arguments;
import org.limosa.engine.local.LocalJob;
import org.limosa.engine.local.RankLoader;
import org.limosa.engine.local.Rendezvous;

/**
 * Runs a program with ranks that are threads: {@code java org.limosa.run.Threads RANKS MAIN-CLASS ARGUMENTS...}. Each
 * rank has its own classes of the program, and so its own static fields. With the environment of {@link Run}, other
 * ranks of the job are in other Java machines.
 */
public final class Threads {
    private static final int FAILED = 1;

    private Threads() {}

    public static void main(String[] args) throws InterruptedException {
        if (args.length < 2) {
            System.err.println("usage: java org.limosa.run.Threads RANKS MAIN-CLASS [ARGUMENTS]...");
            System.exit(2);
        }
        int ranks = Integer.parseInt(args[0]);
        String[] own = Arrays.copyOfRange(args, 2, args.length);
        LocalJob job = join(ranks);
        URL[] paths = classPath();
        List<Thread> threads = new ArrayList<>();
        Map<ClassLoader, String> names = new HashMap<>();
        Map<ClassLoader, String> tags = new HashMap<>();
        // Virtual threads are in no group, and threads of pools that all ranks share in none of a rank.
        Thread.setDefaultUncaughtExceptionHandler((thrower, thrown) -> Start.fail(
                names.get(thrower.getContextClassLoader()), thrower, thrown, FAILED));
        if ("1".equals(System.getenv(Tags.WANTED))) {
            Tags.install(() -> tags.get(Thread.currentThread().getContextClassLoader()));
        }
        for (int rank = job.first(); rank < job.first() + ranks; rank++) {
            RankLoader loader = new RankLoader(paths, Threads.class.getClassLoader(), job.engine(rank));
            int number = rank;
            Thread thread = new Thread(new ThreadGroup("rank " + rank) {
                @Override
                public void uncaughtException(Thread thrower, Throwable thrown) {
                    Start.fail("rank " + number, thrower, thrown, FAILED);
                }
            }, () -> Start.run(args[1], Arguments.given(own.clone(), number, job.ranks())), "rank " + rank);
            thread.setContextClassLoader(loader);
            names.put(loader, "rank " + number);
            tags.put(loader, "[" + number + "] ");
            threads.add(thread);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(new Exit(job, threads), "limosa-exit"));
        job.watch(threads.toArray(Thread[]::new), System.getenv());
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static LocalJob join(int ranks) {
        try {
            return Rendezvous.join(System.getenv(), ranks);
        } catch (IOException e) {
            System.err.println("limosa: the Java machines of the job cannot find each other: " + e.getMessage());
            System.exit(FAILED);
            throw new IllegalStateException(e);
        }
    }

    private static URL[] classPath() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator)).map(path -> {
            try {
                return new File(path.isEmpty() ? "." : path).toURI().toURL();
            } catch (MalformedURLException e) {
                throw new IllegalArgumentException(path, e);
            }
        }).toArray(URL[]::new);
    }
}
