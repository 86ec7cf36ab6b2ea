package org.limosa.engine.local;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.limosa.engine.Envelope;

/** Messages to one rank, in the order in which they were sent, and receives that wait for theirs. */
final class Mailbox implements Post {
    /** Longer messages are not copied before their receive is there. */
    static final long EAGER = 64 << 10;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition arrival = lock.newCondition();
    private final List<Parcel> waiting = new ArrayList<>();
    private final List<LocalOperation> receives = new ArrayList<>();
    private RuntimeException failure;

    @Override
    public void deliver(LocalOperation send, int from, boolean isSynchronous) {
        put(new Parcel.OfThread(send, from, isSynchronous || send.bytes() > EAGER));
    }

    /** A message has come. */
    void put(Parcel parcel) {
        LocalOperation receive;
        lock.lock();
        try {
            receive = takeFirst(receives, each -> parcel.matches(each.context, each.source, each.tag));
            if (receive == null) {
                waiting.add(parcel.kept());
                arrival.signalAll();
                return;
            }
        } finally {
            lock.unlock();
        }
        parcel.hand(receive);
    }

    /** Receives, now or when the message comes. */
    void receive(LocalOperation receive) {
        Parcel parcel;
        lock.lock();
        try {
            parcel = takeFirst(waiting, each -> each.matches(receive.context, receive.source, receive.tag));
            if (parcel == null) {
                check();
                receives.add(receive);
                return;
            }
        } finally {
            lock.unlock();
        }
        parcel.hand(receive);
    }

    private static <T> T takeFirst(List<T> list, Predicate<T> wanted) {
        for (Iterator<T> each = list.iterator(); each.hasNext();) {
            T found = each.next();
            if (wanted.test(found)) {
                each.remove();
                return found;
            }
        }
        return null;
    }

    /** Ends a receive that has no message yet. */
    void cancel(LocalOperation receive) {
        lock.lock();
        try {
            if (!receives.remove(receive)) {
                return;
            }
        } finally {
            lock.unlock();
        }
        receive.complete(new Envelope(receive.source, receive.tag, 0, true), null);
    }

    /** The first message that matches, or null. */
    Parcel look(long context, int source, int tag, boolean takes) {
        lock.lock();
        try {
            Parcel found = find(context, source, tag, takes);
            if (found == null) {
                check();
            }
            return found;
        } finally {
            lock.unlock();
        }
    }

    /** Waits for a message that matches. */
    Parcel await(JavaCommunicator.Look wanted, boolean takes) {
        Waits waits = wanted.on().waits();
        waits.begin(wanted);
        lock.lock();
        try {
            for (;;) {
                Parcel found = find(wanted.on().context(), wanted.source(), wanted.tag(), takes);
                if (found != null) {
                    return found;
                }
                check();
                arrival.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
            waits.end();
        }
    }

    /** Whether a wait for a message is over. */
    boolean has(JavaCommunicator.Look wanted) {
        lock.lock();
        try {
            return failure != null || find(wanted.on().context(), wanted.source(), wanted.tag(), false) != null;
        } finally {
            lock.unlock();
        }
    }

    private Parcel find(long context, int source, int tag, boolean takes) {
        for (Parcel each : waiting) {
            if (each.matches(context, source, tag)) {
                if (takes) {
                    waiting.remove(each);
                }
                return each;
            }
        }
        return null;
    }

    /** The messages that no receive has taken. */
    List<Parcel> lying() {
        lock.lock();
        try {
            return List.copyOf(waiting);
        } finally {
            lock.unlock();
        }
    }

    private void check() {
        if (failure != null) {
            throw failure;
        }
    }

    /** No more messages come: all that wait for some end with this reason. */
    void fail(RuntimeException reason) {
        lock.lock();
        try {
            failure = reason;
            waiting.forEach(each -> each.fail(reason));
            receives.forEach(each -> each.fail(reason));
            receives.clear();
            arrival.signalAll();
        } finally {
            lock.unlock();
        }
    }
}
