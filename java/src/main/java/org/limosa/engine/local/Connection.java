package org.limosa.engine.local;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Envelope;

/**
 * Messages to and from another Java machine. A thread reads what comes, and never waits for anything else. Short
 * messages come whole; of a long one the envelope comes first, and the data follow when the receive is there.
 */
final class Connection {
    private static final int WHOLE = 1;
    private static final int HELD = 2;
    private static final int READY = 3;
    private static final int DATA = 4;
    private static final int LEAVE = 5;
    private static final int ABORT = 6;
    private static final int LOOK = 7;
    private static final int SEEN = 8;
    private static final int CHUNK = 64 << 10;

    private final Rendezvous.Machine machine;
    private final Wire wire;
    private final Executor answers;
    private final AtomicLong numbers = new AtomicLong();
    private final Map<Long, Exchange> sends = new ConcurrentHashMap<>();
    private final Map<Long, Exchange> receives = new ConcurrentHashMap<>();
    private final byte[] outgoing = new byte[CHUNK];
    private final byte[] incoming = new byte[CHUNK];
    private LocalJob job;
    private boolean hasLeft;
    /** What the other machine was asked last, and where the answer belongs. */
    private volatile long asked;
    private volatile CompletableFuture<MachineLook> seen;

    private record Exchange(LocalOperation operation, Envelope envelope) {}

    private interface Writer {
        void write() throws IOException;
    }

    Connection(Rendezvous.Machine machine, Wire wire, Executor answers) {
        this.machine = machine;
        this.wire = wire;
        this.answers = answers;
    }

    void start(LocalJob job) {
        this.job = job;
        Wire.daemon("limosa-read", this::read);
    }

    // --- what goes out ---

    private synchronized void write(Writer writer) {
        try {
            writer.write();
            wire.out.flush();
        } catch (IOException e) {
            throw gone();
        }
    }

    private MPIException gone() {
        boolean isOne = machine.ranks() == 1;
        return MPIException.of(Abi.MPI_ERR_PROC_ABORTED, machine.names() + (isOne ? " has" : " have")
                + " ended without MPI.Finalize while others need " + (isOne ? "it" : "them"));
    }

    void deliver(int dest, LocalOperation send, int from, boolean isSynchronous) {
        Envelope envelope = new Envelope(from, send.tag, send.bytes(), false);
        boolean isHeld = isSynchronous || send.bytes() > Mailbox.EAGER;
        long number = numbers.incrementAndGet();
        job.waits().countSent();
        if (isHeld) {
            sends.put(number, new Exchange(send, envelope));
        }
        write(() -> {
            wire.out.writeByte(isHeld ? HELD : WHOLE);
            wire.out.writeInt(dest);
            wire.out.writeLong(send.context);
            wire.out.writeInt(from);
            wire.out.writeInt(send.tag);
            wire.out.writeLong(send.bytes());
            if (isHeld) {
                wire.out.writeLong(number);
            } else {
                writeData(send.data);
            }
        });
        if (!isHeld) {
            send.complete(envelope, null);
        }
    }

    private void writeData(MemorySegment data) throws IOException {
        long bytes = data == null ? 0 : data.byteSize();
        for (long at = 0; at < bytes; at += CHUNK) {
            int part = (int) Math.min(CHUNK, bytes - at);
            MemorySegment.copy(data, ValueLayout.JAVA_BYTE, at, outgoing, 0, part);
            wire.out.write(outgoing, 0, part);
        }
    }

    /** Asks for the data of a message. */
    private void ask(long number, LocalOperation receive, Envelope envelope) {
        long place = numbers.incrementAndGet();
        receives.put(place, new Exchange(receive, envelope));
        job.waits().countSent();
        answer(() -> {
            wire.out.writeByte(READY);
            wire.out.writeLong(number);
            wire.out.writeLong(place);
        });
    }

    private void give(Exchange send, long place) {
        job.waits().countSent();
        answers.execute(() -> {
            try {
                write(() -> {
                    wire.out.writeByte(DATA);
                    wire.out.writeLong(place);
                    wire.out.writeLong(send.operation.bytes());
                    writeData(send.operation.data);
                });
                send.operation.complete(send.envelope, null);
            } catch (MPIException e) {
                send.operation.fail(e);
            }
        });
    }

    private void answer(Writer writer) {
        answers.execute(() -> {
            try {
                write(writer);
            } catch (MPIException e) {
                // The thread that reads notices it, too.
            }
        });
    }

    void leave() {
        write(() -> wire.out.writeByte(LEAVE));
    }

    void abort(int code) {
        write(() -> {
            wire.out.writeByte(ABORT);
            wire.out.writeInt(code);
        });
    }

    /** Asks what the ranks of the other machine do; the answer is null if one of them can go on by itself. */
    CompletableFuture<MachineLook> look() {
        CompletableFuture<MachineLook> answer = new CompletableFuture<>();
        long number = numbers.incrementAndGet();
        seen = answer;
        asked = number;
        write(() -> {
            wire.out.writeByte(LOOK);
            wire.out.writeLong(number);
        });
        return answer;
    }

    private void show(long number) {
        answer(() -> {
            byte[] look = MachineLook.write(job.look());
            wire.out.writeByte(SEEN);
            wire.out.writeLong(number);
            wire.out.writeInt(look.length);
            wire.out.write(look);
        });
    }

    private void seen(long number, byte[] look) throws IOException {
        // Later answers are of no use.
        if (number == asked) {
            seen.complete(MachineLook.read(look));
        }
    }

    // --- what comes in ---

    private void read() {
        try {
            for (;;) {
                accept(wire.in.readByte());
            }
        } catch (IOException | RuntimeException e) {
            if (!hasLeft) {
                end(e);
            }
        }
    }

    private void end(Exception reason) {
        MPIException shown = reason instanceof IOException ? gone() : new MPIException(
                "a message from " + machine.names() + " cannot be read: " + reason, reason);
        job.fail(shown);
        sends.values().forEach(each -> each.operation.fail(shown));
        receives.values().forEach(each -> each.operation.fail(shown));
    }

    private void accept(int kind) throws IOException {
        switch (kind) {
            case WHOLE, HELD -> message(kind);
            case READY -> give(sends.remove(wire.in.readLong()), wire.in.readLong());
            case DATA -> data(receives.remove(wire.in.readLong()), wire.in.readLong());
            case LOOK -> show(wire.in.readLong());
            case SEEN -> seen(wire.in.readLong(), wire.in.readNBytes(wire.in.readInt()));
            case LEAVE -> hasLeft = true;
            case ABORT -> Runtime.getRuntime().halt(wire.in.readInt());
            default -> throw new IllegalStateException("there is no message of kind " + kind);
        }
        if (kind <= DATA) {
            job.waits().countReceived();
        }
    }

    private void message(int kind) throws IOException {
        Mailbox mailbox = job.mailbox(wire.in.readInt());
        long context = wire.in.readLong();
        Envelope envelope = new Envelope(wire.in.readInt(), wire.in.readInt(), wire.in.readLong(), false);
        if (kind == HELD) {
            mailbox.put(new Held(context, envelope, wire.in.readLong()));
            return;
        }
        byte[] data = new byte[Math.toIntExact(envelope.bytes())];
        wire.in.readFully(data);
        mailbox.put(new Parcel.Whole(context, envelope, MemorySegment.ofArray(data), null));
    }

    private void data(Exchange receive, long bytes) throws IOException {
        MemorySegment to = receive.operation.data;
        for (long at = 0; at < bytes;) {
            int part = wire.in.read(incoming, 0, (int) Math.min(CHUNK, bytes - at));
            if (part < 0) {
                throw new EOFException();
            }
            long room = Math.min(part, receive.operation.bytes() - at);
            if (room > 0) {
                MemorySegment.copy(incoming, 0, to, ValueLayout.JAVA_BYTE, at, (int) room);
            }
            at += part;
        }
        receive.operation.complete(receive.envelope, null);
    }

    /** A message whose data are still with its sender. */
    private final class Held extends Parcel {
        private final long number;

        Held(long context, Envelope envelope, long number) {
            super(context, envelope);
            this.number = number;
        }

        @Override
        void hand(LocalOperation receive) {
            ask(number, receive, envelope);
        }
    }
}
