package org.limosa.engine.local;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.limosa.engine.local.RankView.CallView;
import org.limosa.engine.local.RankView.Lying;
import org.limosa.engine.local.RankView.State;

/**
 * Looks at the threads of a machine, whether one of them could go on by itself. A thread that sleeps for a message or
 * for other ranks cannot, nor can one that waits for a lock or for the end of a thread. One that runs can, and so can
 * one that sleeps for a time or in the system, if it has ever sent or received. If it has not, it is a stranger, which
 * leaves a doubt: it may do so yet.
 */
final class Observer {
    private static final int NOBODY = -1;
    private static final int MOST_LYING = 8;
    /** Threads that every Java machine has; they run no code of the program that sends. */
    private static final Set<String> OF_JAVA = Set.of(
            "main", "DestroyJavaVM", "Reference Handler", "Finalizer", "Signal Dispatcher", "Service Thread",
            "Monitor Deflation Thread", "Notification Thread", "Common-Cleaner", "Attach Listener", "Sweeper thread",
            "VirtualThread-unblocker");
    private static final List<String> OF_JAVA_NUMBERED = List.of("C1 CompilerThread", "C2 CompilerThread", "limosa-");
    /** The thread that waits for all futures of a rank. */
    private static final String OF_FUTURES = "limosa-waiter";

    private final LocalJob job;
    private final Thread[] mains;
    private final Map<ThreadGroup, Integer> groups = new HashMap<>();
    private final ThreadMXBean machine = ManagementFactory.getThreadMXBean();
    private Map<Thread, Long> times = Map.of();

    /** {@code mains}: the first thread of each rank of the machine, before it is started. */
    Observer(LocalJob job, Thread[] mains) {
        this.job = job;
        this.mains = mains.clone();
        for (int i = 0; i < mains.length; i++) {
            groups.put(mains[i].getThreadGroup(), i);
        }
    }

    /** What the ranks of this machine do if none of them can go on by itself; otherwise null. */
    MachineLook look() {
        Waits waits = job.waits();
        long changes = waits.changes();
        long received = waits.received();
        Map<Thread, Waits.Sleeper> sleepers = new HashMap<>(waits.sleepers());
        boolean isEasy = Stream.of(mains).anyMatch(main -> !sleepers.containsKey(main) && mayGoOn(main))
                || sleepers.values().stream().anyMatch(sleeper -> sleeper.goal().isOver());
        if (isEasy) {
            return null;
        }
        waits.forgetEnded();
        MachineLook found = new Threads(sleepers).look(changes);
        return waits.changes() == changes && waits.received() == received ? found : null;
    }

    private static boolean mayGoOn(Thread main) {
        return switch (main.getState()) {
            case NEW, RUNNABLE, TIMED_WAITING -> true;
            case BLOCKED, WAITING, TERMINATED -> false;
        };
    }

    /** The threads at one moment. */
    private final class Threads {
        private final Map<Thread, Waits.Sleeper> sleepers;
        private final Map<Thread, StackTraceElement[]> stacks = Thread.getAllStackTraces();
        private final List<List<String>> stuck =
                Stream.generate(() -> (List<String>) new ArrayList<String>()).limit(mains.length).toList();
        private final boolean[] callerIsStuck = new boolean[mains.length];
        private final boolean[] hasOthers = new boolean[mains.length];
        private final int[] strangers = new int[mains.length];
        private int strangersOfNobody;

        Threads(Map<Thread, Waits.Sleeper> sleepers) {
            this.sleepers = sleepers;
        }

        MachineLook look(long changes) {
            Map<Thread, Long> before = times;
            times = new HashMap<>();
            boolean isBusy = false;
            for (Map.Entry<Thread, StackTraceElement[]> each : stacks.entrySet()) {
                isBusy |= isBusy(each.getKey(), each.getValue(), before);
            }
            if (isBusy) {
                return null;
            }
            List<RankView> ranks = new ArrayList<>();
            for (int i = 0; i < mains.length; i++) {
                RankView view = view(i);
                int others = strangers[i] + strangersOfNobody;
                boolean mayBeWokenByOthers = others > 0 && (view.calls().isEmpty() || callerIsStuck[i]);
                boolean isUnknown = view.calls().isEmpty() && !hasOthers[i];
                if (view.isRunning() && (mayBeWokenByOthers || isUnknown)) {
                    return null;
                }
                ranks.add(view);
            }
            return new MachineLook(
                    ranks, strangersOfNobody, List.of(changes), job.waits().sent(), job.waits().received());
        }

        /** Whether a thread can go on by itself; counts it otherwise. */
        private boolean isBusy(Thread thread, StackTraceElement[] stack, Map<Thread, Long> before) {
            int rank = rankOf(thread);
            boolean isKnown = thread == Thread.currentThread() || sleepers.containsKey(thread)
                    || rank == NOBODY && isOfJava(thread.getName());
            if (isKnown) {
                return false;
            }
            if (hasNothingToDo(stack)) {
                if (rank != NOBODY) {
                    hasOthers[rank] = true;
                }
                return false;
            }
            boolean hasCalled = rank != NOBODY && thread == mains[rank] || job.waits().hasCalled(thread);
            // The scheduler of virtual threads sleeps for those that sleep for a time.
            hasCalled |= rank == NOBODY && job.waits().virtualHasCalled();
            switch (thread.getState()) {
                case RUNNABLE -> {
                    long time = machine.getThreadCpuTime(thread.threadId());
                    times.put(thread, time);
                    if (hasCalled || isCarrier(thread) || !Objects.equals(before.get(thread), time)) {
                        return true;
                    }
                    addStranger(rank);
                }
                case TIMED_WAITING -> {
                    if (hasCalled) {
                        return true;
                    }
                    addStranger(rank);
                }
                case BLOCKED, WAITING -> {
                    if (isCarrier(thread)) {
                        return true;
                    }
                    if (rank != NOBODY) {
                        hasOthers[rank] = true;
                        callerIsStuck[rank] |= hasCalled;
                        String line = Frames.line(stack);
                        if (line != null) {
                            stuck.get(rank).add(line);
                        }
                    }
                }
                case NEW, TERMINATED -> { }
            }
            return false;
        }

        private void addStranger(int rank) {
            if (rank == NOBODY) {
                strangersOfNobody++;
            } else {
                strangers[rank]++;
                hasOthers[rank] = true;
            }
        }

        private RankView view(int index) {
            int rank = job.first() + index;
            List<CallView> calls = new ArrayList<>();
            sleepers.values().stream().filter(sleeper -> sleeper.goal().owner() == rank)
                    .sorted(Comparator.comparingLong(Waits.Sleeper::since))
                    .forEach(sleeper -> addCall(sleeper, calls));
            State state = !calls.isEmpty() ? State.RUNNING : job.hasLeft(rank) ? State.FINALIZED
                    : mains[index].isAlive() || hasThreads(index) ? State.RUNNING : State.ENDED;
            return new RankView(rank, state, calls, List.copyOf(stuck.get(index)), strangers[index], lying(rank));
        }

        private boolean hasThreads(int index) {
            return stacks.keySet().stream().anyMatch(
                    thread -> thread.isAlive() && !thread.isDaemon() && rankOf(thread) == index);
        }

        private void addCall(Waits.Sleeper sleeper, List<CallView> calls) {
            Thread thread = sleeper.thread();
            boolean isOfFutures = thread.getName().equals(OF_FUTURES);
            StackTraceElement[] stack = stacks.containsKey(thread) ? stacks.get(thread) : thread.getStackTrace();
            // A message to itself tells this thread that there is something new.
            List<Awaited> awaited = new ArrayList<>(sleeper.goal().awaited());
            awaited.removeIf(each -> isOfFutures && each.members() == 1);
            if (Frames.isCollective(stack)) {
                awaited.replaceAll(Awaited::inCollective);
            }
            awaited.replaceAll(each -> each.ofProgram());
            if (!awaited.isEmpty()) {
                String name = isOfFutures ? "CompletableFuture" : Frames.call(stack, awaited.get(0).communicator());
                long nanos = System.nanoTime() - sleeper.since();
                calls.add(new CallView(
                        name, Frames.language(stack), Frames.line(stack), nanos, List.copyOf(awaited)));
            }
        }
    }

    private List<Lying> lying(int rank) {
        List<Lying> found = new ArrayList<>();
        for (Parcel each : job.mailbox(rank).lying()) {
            Shared shared = job.find(each.context, rank);
            if (shared != null && shared.context == each.context && found.size() < MOST_LYING) {
                int source = each.envelope.source();
                found.add(new Lying(source, shared.sender(source, rank), each.envelope.tag(), each.context,
                        shared.name()));
            }
        }
        return found;
    }

    private int rankOf(Thread thread) {
        for (ThreadGroup group = thread.getThreadGroup(); group != null; group = group.getParent()) {
            if (groups.containsKey(group)) {
                return groups.get(group);
            }
        }
        return NOBODY;
    }

    private static boolean isOfJava(String name) {
        return OF_JAVA.contains(name) || OF_JAVA_NUMBERED.stream().anyMatch(name::startsWith);
    }

    /** Whether a thread runs virtual threads. */
    private static boolean isCarrier(Thread thread) {
        return thread.getClass().getName().equals("jdk.internal.misc.CarrierThread");
    }

    /** Whether a thread of a pool waits for something to do, which only another thread can give it. */
    private static boolean hasNothingToDo(StackTraceElement[] stack) {
        boolean isWaiting = false;
        for (StackTraceElement frame : stack) {
            switch (frame.getClassName()) {
                case "java.util.concurrent.ForkJoinPool" -> isWaiting |= frame.getMethodName().equals("awaitWork");
                case "java.util.concurrent.ThreadPoolExecutor" -> isWaiting |= frame.getMethodName().equals("getTask");
                case "jdk.internal.ref.CleanerImpl" -> isWaiting = true;
                case "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue" -> {
                    // It may have something to do at some time.
                    return false;
                }
                default -> { }
            }
        }
        return isWaiting;
    }
}
