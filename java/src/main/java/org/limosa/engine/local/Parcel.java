package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.Type;

/** A message on its way to its receive. */
abstract class Parcel {
    final long context;
    final Envelope envelope;

    Parcel(long context, Envelope envelope) {
        this.context = context;
        this.envelope = envelope;
    }

    final boolean matches(long context, int source, int tag) {
        return this.context == context && (source == Communicator.ANY || source == envelope.source())
                && (tag == Communicator.ANY || tag == envelope.tag());
    }

    /** What stays in the mailbox if no receive waits for it. */
    Parcel kept() {
        return this;
    }

    /** Gives the message to a receive, which is complete then or later. */
    abstract void hand(LocalOperation receive);

    /** Ends the waits for the message to be received. */
    void fail(RuntimeException reason) {}

    static void copy(MemorySegment from, MemorySegment to) {
        if (from != null && to != null) {
            MemorySegment.copy(from, 0, to, 0, Math.min(from.byteSize(), to.byteSize()));
        }
    }

    static MemorySegment copyOf(MemorySegment data) {
        return data == null ? null : Type.BYTE.allocate(data.byteSize()).copyFrom(data);
    }

    /** A message that has left its sender. */
    static final class Whole extends Parcel {
        private final MemorySegment data;
        private final Object[] objects;

        Whole(long context, Envelope envelope, MemorySegment data, Object[] objects) {
            super(context, envelope);
            this.data = data;
            this.objects = objects;
        }

        @Override
        void hand(LocalOperation receive) {
            copy(data, receive.data);
            receive.complete(envelope, objects);
        }
    }

    /** A message whose data are still where another thread of this machine sends them from. */
    static final class OfThread extends Parcel {
        private final LocalOperation send;
        private final boolean isHeld;

        /** One that is held is not copied before its receive is there. */
        OfThread(LocalOperation send, int from, boolean isHeld) {
            super(send.context, new Envelope(from, send.tag, send.bytes(), false));
            this.send = send;
            this.isHeld = isHeld;
        }

        @Override
        Parcel kept() {
            if (isHeld) {
                return this;
            }
            Parcel copy = new Whole(context, envelope, copyOf(send.data), send.objects);
            send.complete(envelope, null);
            return copy;
        }

        @Override
        void hand(LocalOperation receive) {
            copy(send.data, receive.data);
            receive.complete(envelope, send.objects);
            send.complete(envelope, null);
        }

        @Override
        void fail(RuntimeException reason) {
            send.fail(reason);
        }
    }
}
