package org.limosa.engine.local;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import mpi.MPIException;
import org.limosa.abi.Abi;

/**
 * Where the ranks of a communicator meet: each shows something to the others, all look, and all part. No rank shows the
 * next thing before all have looked.
 */
final class Meeting {
    private final Shared shared;
    private final int side;
    private final Waits waits;
    private final Object[] shown;
    private final AtomicReferenceArray<Thread> sleeping;
    private final AtomicInteger left;
    private volatile int round;
    /** Why the calls of this round do not fit together. Written by the last to come, before the others go on. */
    private MPIException mismatch;
    /** Why the operation of this round has failed on a rank. */
    private final AtomicReference<MPIException> failure = new AtomicReference<>();

    Meeting(Shared shared, int side, Waits waits) {
        this.shared = shared;
        this.side = side;
        this.waits = waits;
        int size = shared.groups[side].length;
        shown = new Object[size];
        sleeping = new AtomicReferenceArray<>(size);
        left = new AtomicInteger(size);
    }

    /** Begins a collective call; returns when all have. Fails on all ranks if their calls do not fit together. */
    void call(int rank, Call call) {
        shown[rank] = call;
        meet(rank, true);
        if (mismatch != null) {
            throw again(mismatch);
        }
    }

    /** The call of a rank. */
    Call callOf(int rank) {
        return (Call) shown[rank];
    }

    /** Shows something; returns when all have. */
    void show(int rank, Object something) {
        shown[rank] = something;
        meet(rank, false);
    }

    /** What a rank has shown. */
    Object of(int rank) {
        return shown[rank];
    }

    /** Returns when all have called it. */
    void await(int rank) {
        meet(rank, false);
    }

    /**
     * Does the part of a rank in a call that all have begun; returns when all have done theirs. What fails on one rank
     * fails on all, so that none waits for it.
     */
    void part(int rank, Runnable part) {
        Error error = null;
        try {
            part.run();
        } catch (MPIException e) {
            failure.compareAndSet(null, e);
        } catch (RuntimeException e) {
            failure.compareAndSet(null, failed(rank, e));
        } catch (Error e) {
            failure.compareAndSet(null, failed(rank, e));
            error = e;
        }
        meet(rank, false);
        if (error != null) {
            throw error;
        }
        if (failure.get() != null) {
            throw again(failure.get());
        }
    }

    private MPIException failed(int rank, Throwable thrown) {
        return new MPIException(callOf(rank).name() + " has failed on rank " + rank + ": " + thrown, thrown);
    }

    /** Each rank has an exception of its own, with its own lines. */
    private static MPIException again(MPIException found) {
        return found.getCause() == null ? MPIException.of(found.getErrorClass(), found.getMessage())
                : new MPIException(found.getMessage(), found.getCause());
    }

    private void meet(int rank, boolean areCalls) {
        int before = round;
        if (left.decrementAndGet() == 0) {
            left.set(shown.length);
            if (areCalls) {
                mismatch = Call.problem(shown, shared.name());
                failure.setPlain(null);
            }
            round = before + 1;
            for (int other = 0; other < shown.length; other++) {
                LockSupport.unpark(sleeping.get(other));
            }
            return;
        }
        if (!Waiting.looks(() -> round != before)) {
            sleeping.set(rank, Thread.currentThread());
            waits.sleep(new Rest(rank, before));
            sleeping.set(rank, null);
        }
    }

    /** The wait of a rank for those that have not come yet. */
    private final class Rest implements Wait {
        private final int rank;
        private final int before;

        Rest(int rank, int before) {
            this.rank = rank;
            this.before = before;
        }

        @Override
        public boolean isOver() {
            return round != before;
        }

        @Override
        public int owner() {
            return shared.groups[side][rank];
        }

        @Override
        public List<Awaited> awaited() {
            int[] members = shared.groups[side];
            List<Integer> missing = IntStream.range(0, members.length)
                    .filter(other -> other != rank && sleeping.get(other) == null)
                    .mapToObj(other -> members[other]).toList();
            return List.of(new Awaited(
                    Awaited.Kind.COLLECTIVE, Awaited.ANY, missing, Awaited.ANY, shared.context, shared.name(),
                    members.length));
        }
    }
}
