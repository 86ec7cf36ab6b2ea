package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import org.limosa.engine.Communicator.Taken;

/** Messages of any length with one tag between the processes of a communicator that no other messages use. */
public record ByteChannel(Communicator on, int tag) implements Channel<byte[]> {
    /** With tag 0. */
    public ByteChannel(Communicator on) {
        this(on, 0);
    }

    @Override
    public int rank() {
        return on.rank();
    }

    @Override
    public int size() {
        return on.size();
    }

    @Override
    public void send(byte[] value, int dest) {
        on.send(MemorySegment.ofArray(value), Type.BYTE, dest, tag, Mode.STANDARD);
    }

    @Override
    public byte[] receive(int source) {
        Taken taken = on.take(source, tag, true);
        byte[] bytes = new byte[Math.toIntExact(taken.envelope().bytes())];
        taken.receive(MemorySegment.ofArray(bytes));
        return bytes;
    }

    @Override
    public byte[] exchange(byte[] value, int dest, int source) {
        Operation sent = on.startSend(MemorySegment.ofArray(value), Type.BYTE, dest, tag, Mode.STANDARD);
        byte[] received = receive(source);
        sent.await();
        return received;
    }
}
