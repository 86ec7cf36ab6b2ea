import java.io.Serializable;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.limosa.Errors.MismatchException;
import org.limosa.Errors.TruncationException;
import org.limosa.Received;
import org.limosa.World;

/** Futures of org.limosa complete by themselves; virtual threads wait at no cost. */
public class WorldFutures {
    record Step(int number, String text) implements Serializable {}

    static World world;
    static int right;
    static int left;

    static void many() {
        int count = 300;
        List<CompletableFuture<Integer>> sums = new ArrayList<>();
        int before = threads();
        for (int i = 0; i < count; i++) {
            int tag = i;
            sums.add(world.receiveIntoAsync(new int[2], left, tag).thenApply(got -> got.value()[0] + got.value()[1]));
        }
        Check.that(threads() - before < 60, "futures need no threads of their own");
        world.barrier();
        // In another order than they are waited for.
        for (int i = count - 1; i >= 0; i--) {
            world.send(new int[] {i, 1}, right, i);
        }
        for (int i = 0; i < count; i++) {
            Check.same(i + 1, sums.get(i).join(), "future " + i);
        }
    }

    static int threads() {
        return Thread.getAllStackTraces().size();
    }

    static void nobodyWaits() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        world.receiveAsync(Step.class, left, 1).thenAccept(step -> {
            Check.same(1, step.number(), "step");
            done.countDown();
        });
        world.barrier();
        world.send(new Step(1, "x".repeat(50_000)), right, 1);
        Check.that(done.await(300, TimeUnit.SECONDS), "the future has not completed by itself");
    }

    /** What follows a future may wait for messages itself. */
    static void chains() {
        world.send(new Step(2, "chain"), right, 2);
        CompletableFuture<String> chain = world.receiveAsync(Step.class, left, 2).thenApply(step -> {
            world.send(step.text() + "!", left, 3);
            return world.receive(String.class, right, 3);
        });
        Check.same("chain!", chain.join(), "chain");
    }

    static void cancelled() {
        CompletableFuture<String> unwanted = world.receiveAsync(String.class, left, 4);
        Check.that(unwanted.cancel(true), "a receive without a message can be withdrawn");
        Check.that(unwanted.isCancelled() && unwanted.isDone(), "cancelled");
        try {
            unwanted.join();
            throw new AssertionError("no CancellationException");
        } catch (CancellationException e) {
            // As it should be.
        }
        CompletableFuture<Received<int[]>> unwantedArray = world.receiveIntoAsync(new int[1], left, 4);
        Check.that(unwantedArray.cancel(false), "a receive of an array can be withdrawn");
        world.barrier();
        // The message is for the next receive.
        world.send("wanted", right, 4);
        CompletableFuture<String> wanted = world.receiveAsync(String.class, left, 4);
        Check.same("wanted", wanted.join(), "after a withdrawn receive");
        Check.that(!wanted.cancel(true) && !wanted.isCancelled(), "what is complete cannot be withdrawn");
        CompletableFuture<Void> sent = world.sendAsync(new double[200_000], right, 5);
        Check.that(!sent.cancel(true), "a send cannot be withdrawn");
        world.receive(double[].class, left, 5);
        sent.join();
    }

    /** A receive that completes in another way takes no message of a later one. */
    static void completedOtherwise() {
        CompletableFuture<String> late = world.receiveAsync(String.class, left, 10).orTimeout(1, TimeUnit.MILLISECONDS);
        Check.same(TimeoutException.class, failure(late).getClass(), "class of " + failure(late));
        Received<int[]> none = new Received<>(null, left, 10, 0);
        CompletableFuture<Received<int[]>> array = world.receiveIntoAsync(new int[1], left, 10);
        Check.same(none, array.completeOnTimeout(none, 1, TimeUnit.MILLISECONDS).join(), "completeOnTimeout");
        CompletableFuture<String> completed = world.receiveAsync(String.class, left, 10);
        Check.that(completed.complete("own") && !completed.complete("again"), "complete");
        Check.same("own", completed.join(), "complete");
        CompletableFuture<String> failed = world.receiveAsync(String.class, left, 10);
        Check.that(failed.completeExceptionally(new IllegalStateException("own")), "completeExceptionally");
        Check.same("own", failure(failed).getMessage(), "completeExceptionally");
        CompletableFuture<String> later = world.receiveAsync(String.class, left, 10);
        Check.same("later", later.completeAsync(() -> "later").join(), "completeAsync");
        world.barrier();
        CompletableFuture<String> wanted = world.receiveAsync(String.class, left, 10).orTimeout(1, TimeUnit.DAYS);
        world.send("wanted", right, 10);
        Check.same("wanted", wanted.join(), "before its time is over");
    }

    /** No message is lost between receives that time out while messages come. */
    static void timeouts() {
        int count = 40;
        Thread sender = Thread.startVirtualThread(() -> {
            for (int i = 0; i < count; i++) {
                world.send(new int[] {i}, right, 11);
                world.send("x".repeat(1000 * i) + i, right, 12);
                double[] many = new double[20_000];
                many[many.length - 1] = i;
                world.send(many, right, 13);
            }
        });
        double[] many = new double[20_000];
        for (int i = 0; i < count; i++) {
            Check.same(i, persistently(() -> world.receiveIntoAsync(new int[1], left, 11)).value()[0], "an element");
            Check.that(persistently(() -> world.receiveAsync(String.class, left, 12)).endsWith("" + i), "a text");
            persistently(() -> world.receiveIntoAsync(many, left, 13));
            Check.same((double) i, many[many.length - 1], "an array");
        }
        try {
            sender.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The message of a receive that is started again when it times out. */
    static <T> T persistently(Supplier<CompletableFuture<T>> receive) {
        for (long time = 1;; time *= 2) {
            CompletableFuture<T> future = receive.get().orTimeout(time, TimeUnit.MICROSECONDS);
            try {
                return future.join();
            } catch (CompletionException e) {
                Check.same(TimeoutException.class, e.getCause().getClass(), "class of " + e.getCause());
            }
        }
    }

    /** An arena cannot be closed while a future uses its memory. */
    static void arenas() {
        Arena arena = Arena.ofShared();
        MemorySegment memory = arena.allocate(8);
        CompletableFuture<?> unwanted = world.receiveIntoAsync(memory, left, 8);
        CompletableFuture<?> wanted = world.receiveIntoAsync(memory, left, 9);
        Check.throwsA(IllegalStateException.class, arena::close);
        Check.that(unwanted.cancel(true), "a receive into an arena can be withdrawn");
        Check.throwsA(IllegalStateException.class, arena::close);
        world.barrier();
        world.send(new byte[8], right, 9);
        wanted.join();
        arena.close();
    }

    static void failures() {
        CompletableFuture<Received<int[]>> small = world.receiveIntoAsync(new int[2], left, 6);
        CompletableFuture<Integer> other = world.receiveAsync(Integer.class, left, 7);
        world.barrier();
        CompletableFuture<Void> one = world.sendAsync(new int[5], right, 6);
        CompletableFuture<Void> two = world.sendAsync("text", right, 7);
        Check.same(TruncationException.class, failure(small).getClass(), "class of " + failure(small));
        Check.that(failure(small).getMessage().startsWith("receiveIntoAsync on rank " + world.rank()), "where");
        Check.same(MismatchException.class, failure(other).getClass(), "class of " + failure(other));
        CompletableFuture.allOf(one, two).join();
    }

    static Throwable failure(CompletableFuture<?> future) {
        try {
            future.join();
        } catch (CompletionException e) {
            return e.getCause();
        }
        throw new AssertionError("the future has not failed");
    }

    static void virtualThreads() throws InterruptedException {
        int count = 200;
        int before = threads();
        List<Thread> all = new ArrayList<>();
        List<AssertionError> wrong = new ArrayList<>();
        int[] results = new int[count];
        for (int i = 0; i < count; i++) {
            int number = i;
            all.add(Thread.startVirtualThread(() -> {
                int[] got = world.receiveInto(new int[1], left, 1000 + number).value();
                results[number] = got[0] + world.receive(Integer.class, left, 2000 + number);
            }));
        }
        world.barrier();
        Check.that(threads() - before < 60, "virtual threads wait without platform threads");
        for (int i = count - 1; i >= 0; i--) {
            int number = i;
            all.add(Thread.startVirtualThread(() -> {
                world.send(new int[] {number}, right, 1000 + number);
                world.send(number, right, 2000 + number);
            }));
        }
        for (Thread each : all) {
            each.join();
        }
        for (int i = 0; i < count; i++) {
            Check.same(2 * i, results[i], "virtual thread " + i);
        }
        // Collective calls and arrays of unknown length, too.
        Thread.startVirtualThread(() -> {
            world.send(new long[] {world.rank()}, right);
            synchronized (wrong) {
                long[] got = world.receive(long[].class, left);
                if (!Arrays.equals(got, new long[] {left}) || world.allgather(1).size() != world.size()) {
                    wrong.add(new AssertionError(Arrays.toString(got)));
                }
            }
        }).join();
        Check.same(List.of(), wrong, "in a virtual thread");
    }

    public static void main(String[] args) {
        World.run(args, all -> {
            world = all;
            right = (world.rank() + 1) % world.size();
            left = (world.rank() + world.size() - 1) % world.size();
            many();
            nobodyWaits();
            chains();
            cancelled();
            completedOtherwise();
            timeouts();
            arenas();
            failures();
            virtualThreads();
            // It must not hinder the end of the program.
            world.receiveAsync(String.class, left, 99);
            Check.end(world);
        });
    }
}
