package mpi;

import java.lang.foreign.MemorySegment;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.ObjectSends;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/** A receive of objects: of the first message, and then of the rest ({@link ObjectSends}). */
final class ObjectReceive extends Pending {
    private final Communicator hidden;
    private final String function;
    private final Object buffer;
    private final int offset;
    private final int count;
    private final Datatype type;
    private final byte[] message = new byte[ObjectSends.WHOLE];
    private Operation operation;
    private Envelope envelope;
    private ObjectSends.Stream stream;
    private boolean active = true;

    ObjectReceive(
            Communicator communicator, String function, Object buffer, int offset, int count, Datatype type, int source,
            int tag) {
        Layout.check(function, buffer, offset, count, type);
        hidden = communicator.hidden();
        this.function = function;
        this.buffer = buffer;
        this.offset = offset;
        this.count = count;
        this.type = type;
        operation = communicator.startReceive(MemorySegment.ofArray(message), Type.BYTE, source, tag);
    }

    @Override
    boolean isActive() {
        return active;
    }

    @Override
    Status await() {
        Status status = finish(operation.await());
        return status != null ? status : finish(operation.await());
    }

    @Override
    Status test() {
        for (;;) {
            Envelope found = operation.test();
            Status status = found == null ? null : finish(found);
            if (found == null || status != null) {
                return status;
            }
        }
    }

    @Override
    Status finish(Envelope found) {
        if (stream == null) {
            envelope = found;
            if (found.cancelled()) {
                active = false;
                return new Status(found, null);
            }
            if (operation.handed() != null) {
                active = false;
                int objects = Objects.accept(function, operation.handed(), buffer, offset, count, type);
                return Status.ofObjects(found.source(), found.tag(), found.bytes(), objects);
            }
            stream = ObjectSends.Stream.of(message, found.bytes());
            if (!stream.isComplete()) {
                operation = stream.rest(hidden, found.source());
                return null;
            }
        }
        active = false;
        int objects = Objects.read(function, stream.bytes(), buffer, offset, count, type);
        return Status.ofObjects(envelope.source(), envelope.tag(), stream.bytes().length, objects);
    }

    @Override
    void cancel() {
        if (stream == null) {
            operation.cancel();
        }
    }

    @Override
    void free() {
        throw Errors.argument("Free: a receive of objects cannot be given up; cancel it, or wait for it");
    }

    @Override
    Operation operation() {
        return operation;
    }
}
