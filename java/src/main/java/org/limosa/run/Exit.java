package org.limosa.run;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.limosa.engine.local.Frames;
import org.limosa.engine.local.LocalJob;

/**
 * What is done when a rank that is a thread calls {@code System.exit}, which ends the whole machine. Ranks that pass
 * messages no more, as those of programs whose last line is {@code System.exit(0)}, have time to end. Others are named,
 * since their work is lost.
 */
final class Exit implements Runnable {
    /** How long ranks have to end that pass messages no more, and how long others, in nanoseconds. */
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(10);
    private static final long SHORT = TimeUnit.SECONDS.toNanos(1);
    /** In milliseconds. */
    private static final long PAUSE = 5;

    private final LocalJob job;
    private final List<Thread> mains;

    /** {@code mains}: the first thread of each rank of this machine. */
    Exit(LocalJob job, List<Thread> mains) {
        this.job = job;
        this.mains = List.copyOf(mains);
    }

    @Override
    public void run() {
        Map.Entry<Thread, StackTraceElement[]> caller = Thread.getAllStackTraces().entrySet().stream()
                .filter(each -> isInExit(each.getValue())).findFirst().orElse(null);
        if (caller == null || Uncaught.isEnding()) {
            return;
        }
        List<Integer> unfinished = leaveTimeToEnd(caller.getKey());
        if (!unfinished.isEmpty()) {
            String line = Frames.line(caller.getValue());
            System.out.flush();
            System.err.println("limosa: System.exit" + (line == null ? "" : " at " + line)
                    + " ends all ranks, which are threads of one process; "
                    + (unfinished.size() == 1 ? "rank " : "ranks ")
                    + String.join(", ", unfinished.stream().map(String::valueOf).toList()) + " had not finished");
        }
    }

    /** The ranks that still pass messages after that. */
    private List<Integer> leaveTimeToEnd(Thread caller) {
        long begin = System.nanoTime();
        for (;;) {
            List<Integer> running = IntStream.range(0, mains.size()).filter(i -> isRunning(mains.get(i), caller))
                    .mapToObj(i -> job.first() + i).toList();
            List<Integer> unfinished = running.stream().filter(job::isInside).toList();
            long patience = unfinished.isEmpty() ? PATIENCE : SHORT;
            if (running.isEmpty() || System.nanoTime() - begin > patience) {
                return unfinished;
            }
            try {
                Thread.sleep(PAUSE);
            } catch (InterruptedException e) {
                return unfinished;
            }
        }
    }

    /** Whether a rank neither has ended nor is the one that ends all. */
    private static boolean isRunning(Thread main, Thread caller) {
        ThreadGroup group = main.getThreadGroup();
        boolean isCaller = group != null && group.parentOf(caller.getThreadGroup());
        return main.isAlive() && !isCaller && !isInExit(main.getStackTrace());
    }

    private static boolean isInExit(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getClassName().equals("java.lang.Runtime") && frame.getMethodName().equals("exit")) {
                return true;
            }
        }
        return false;
    }
}
