package org.limosa;

import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import mpi.MPIException;
import org.limosa.engine.Envelope;
import org.limosa.engine.Operation;

/**
 * A message that is under way. The {@link Waiter} completes it. A receive that the program completes in another way, or
 * that times out, is withdrawn first, so that it takes no message of a later receive; if a message has come for it, the
 * message completes it.
 */
abstract class Transfer<T> extends CompletableFuture<T> {
    private final Waiter waiter;
    private final String where;
    private final boolean canBeWithdrawn;
    /** What is waited for; replaced by what follows it. */
    private Operation operation;
    /** What completes it after the waiter has withdrawn it; the first request counts. */
    private final AtomicReference<Runnable> outcome = new AtomicReference<>();
    /** Whether the waiter has withdrawn it. */
    private final CompletableFuture<Boolean> withdrawn = new CompletableFuture<>();

    /** Whether a part has come. */
    private boolean hasBegun;
    private T result;

    Transfer(Waiter waiter, String where, Operation operation, boolean canBeWithdrawn) {
        this.waiter = waiter;
        this.where = where;
        this.operation = operation;
        this.canBeWithdrawn = canBeWithdrawn;
    }

    /** What follows the operation; null if the {@link #result} is there. */
    abstract Operation next(Envelope envelope);

    final void result(T value) {
        result = value;
    }

    final Operation operation() {
        return operation;
    }

    /** Goes on after the operation is complete; whether the transfer is over. */
    final boolean advance(Envelope envelope) {
        if (envelope.cancelled()) {
            outcome.compareAndSet(null, () -> super.cancel(false));
            over(outcome.get(), true);
            return true;
        }
        try {
            operation = next(envelope);
            hasBegun = true;
        } catch (RuntimeException e) {
            fail(e);
            return true;
        }
        if (operation == null) {
            over(() -> super.complete(result), false);
        }
        return operation == null;
    }

    final void fail(RuntimeException thrown) {
        RuntimeException told = thrown instanceof MPIException e ? Messages.told(where, e) : thrown;
        over(() -> super.completeExceptionally(told), false);
    }

    /**
     * What the program has asked to be done next may wait for other messages, so it cannot be done by the thread that
     * waits for them.
     */
    private void over(Runnable completion, boolean isWithdrawn) {
        operation = null;
        Thread.startVirtualThread(() -> {
            completion.run();
            withdrawn.complete(isWithdrawn);
        });
    }

    /** Completes it now, in the calling thread, if that needs no waiting. */
    final boolean isCompleteNow() {
        try {
            Envelope envelope = operation.test();
            if (envelope == null) {
                return false;
            }
            operation = next(envelope);
            hasBegun = true;
        } catch (RuntimeException e) {
            fail(e);
            return true;
        }
        if (operation == null) {
            withdrawn.complete(false);
            super.complete(result);
        }
        return operation == null;
    }

    /** For the waiter: asks to end a receive that has no message yet. */
    final void withdraw() {
        if (operation != null && canBeWithdrawn && !hasBegun) {
            operation.cancel();
        }
    }

    /** Asks to withdraw a receive and to complete it otherwise then; the future says whether that was in time. */
    private CompletableFuture<Boolean> withdraw(Runnable completion) {
        if (isDone() || !outcome.compareAndSet(null, completion)) {
            return withdrawn.thenApply(any -> false);
        }
        waiter.withdraw(this);
        return withdrawn;
    }

    /**
     * Withdraws a receive that has no message yet. Waits until it is known whether that was in time.
     *
     * @return whether it was withdrawn; a send never is
     */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        return canBeWithdrawn && withdraw(() -> super.cancel(false)).join() || isCancelled();
    }

    /** As {@link #cancel}, with a value. */
    @Override
    public boolean complete(T value) {
        return canBeWithdrawn ? withdraw(() -> super.complete(value)).join() : super.complete(value);
    }

    /** As {@link #cancel}, with an exception. */
    @Override
    public boolean completeExceptionally(Throwable thrown) {
        Objects.requireNonNull(thrown);
        return canBeWithdrawn ? withdraw(() -> super.completeExceptionally(thrown)).join()
                : super.completeExceptionally(thrown);
    }

    @Override
    public CompletableFuture<T> completeAsync(Supplier<? extends T> supplier, Executor executor) {
        executor.execute(() -> {
            try {
                complete(supplier.get());
            } catch (RuntimeException e) {
                completeExceptionally(e);
            }
        });
        return this;
    }

    /** As {@link #cancel} after some time, without waiting, with a {@link TimeoutException}. */
    @Override
    public CompletableFuture<T> orTimeout(long timeout, TimeUnit unit) {
        return canBeWithdrawn ? after(timeout, unit, () -> super.completeExceptionally(new TimeoutException()))
                : super.orTimeout(timeout, unit);
    }

    /** As {@link #cancel} after some time, without waiting, with a value. */
    @Override
    public CompletableFuture<T> completeOnTimeout(T value, long timeout, TimeUnit unit) {
        return canBeWithdrawn ? after(timeout, unit, () -> super.complete(value))
                : super.completeOnTimeout(value, timeout, unit);
    }

    /** Asks to withdraw a receive when it has taken a time. The thread of all timers does not wait for that. */
    private CompletableFuture<T> after(long timeout, TimeUnit unit, Runnable completion) {
        CompletableFuture<Void> alarm = new CompletableFuture<Void>().completeOnTimeout(null, timeout, unit);
        alarm.thenRun(() -> withdraw(completion));
        whenComplete((value, thrown) -> alarm.cancel(false));
        return this;
    }
}
