package org.limosa.engine.local;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Looks for hangs of a job whose ranks are threads, now and then, and reports each once, as the launcher does for ranks
 * that are processes. A job hangs when all ranks have left or sleep for each other, nothing has happened
 * between several looks, and the last rank began to wait some time ago. With a doubt, that time is ten times as long,
 * and the job is ended only after another time ({@code LIMOSA_HANG_GRACE}).
 */
final class HangWatch {
    /** The exit code of a job that is ended because it hangs. */
    private static final int EXIT_CODE = 86;
    private static final long PERIOD = TimeUnit.MILLISECONDS.toNanos(400);
    /** A longer time between two looks says that the machine, and so its ranks, had no time to do anything. */
    private static final long LATE = TimeUnit.MILLISECONDS.toNanos(1200);
    /** How long nothing must change. */
    private static final long QUIET = TimeUnit.MILLISECONDS.toNanos(800);
    private static final long DOUBT = 10;
    private static final double NANOS = 1e9;

    private final LocalJob job;
    private final boolean ends;
    private final long after;
    private final long grace;

    private long looked = System.nanoTime();
    /** Since when nothing has changed, and what was seen. */
    private long since;
    private MachineLook before;
    private boolean isReported;
    private boolean withDoubt;
    private long reported;

    private HangWatch(LocalJob job, Map<String, String> environment) {
        this.job = job;
        ends = "abort".equals(environment.get("LIMOSA_ON_HANG"));
        after = time(environment, "LIMOSA_HANG_AFTER", 1);
        grace = time(environment, "LIMOSA_HANG_GRACE", 30);
    }

    private static long time(Map<String, String> environment, String name, double otherwise) {
        try {
            return (long) (Double.parseDouble(environment.getOrDefault(name, "" + otherwise)) * NANOS);
        } catch (NumberFormatException e) {
            System.err.println("limosa: " + name + " must be a number of seconds, not " + environment.get(name));
            return (long) (otherwise * NANOS);
        }
    }

    /** Starts to look after a job, unless the environment turns that off. */
    static void start(LocalJob job, Map<String, String> environment) {
        if (!"off".equals(environment.get("LIMOSA_ON_HANG"))) {
            HangWatch watch = new HangWatch(job, environment);
            Wire.daemon("limosa-watch", watch::run);
        }
    }

    private void run() {
        for (;;) {
            LockSupport.parkNanos(PERIOD);
            look(System.nanoTime());
        }
    }

    private void look(long now) {
        boolean isLate = now - looked > LATE;
        looked = now;
        MachineLook found = job.lookAtAll();
        boolean isSame = found != null && found.isInCall() && before != null && found.isSame(before);
        before = found;
        if (!isSame || isLate) {
            isReported &= isSame;
            since = now;
            return;
        }
        boolean isDoubtful = found.isDoubtful();
        boolean lasts = isDoubtful ? now - since >= after * DOUBT : found.leastNanos() >= after;
        if (now - since < QUIET || !lasts) {
            return;
        }
        if (!isReported || withDoubt && !isDoubtful) {
            isReported = true;
            withDoubt = isDoubtful;
            reported = now;
            say(HangReport.of(found.ranks(), found.strangers(), isDoubtful, (now - since) / NANOS)
                    + (ends && isDoubtful ? "limosa: the job will be ended in " + Words.duration(grace / NANOS)
                            + " if nothing happens (--on-hang=abort, LIMOSA_HANG_GRACE)\n" : ""));
        }
        if (ends && (!isDoubtful || now - reported >= grace)) {
            say("limosa: ending the job because of the hang (--on-hang=abort)\n");
            job.abort(EXIT_CODE);
        }
    }

    private static void say(String text) {
        System.out.flush();
        System.err.print(text);
        System.err.flush();
    }
}
