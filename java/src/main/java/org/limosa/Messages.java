package org.limosa;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.Supplier;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Communicator.Taken;
import org.limosa.engine.Envelope;
import org.limosa.engine.Mode;
import org.limosa.engine.ObjectSends;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/** Messages between two ranks: the first part of {@link Comm}. */
public abstract sealed class Messages permits Collectives {
    final Home home;
    /** Null after the end. */
    private volatile Communicator communicator;
    final Communicator hidden;
    final int rank;
    final int size;

    Messages(Home home, Communicator communicator) {
        this.home = home;
        this.communicator = communicator;
        // All ranks are here now. They need not be when a value is sent.
        hidden = communicator.hidden();
        rank = communicator.rank();
        size = communicator.size();
    }

    final Communicator communicator() {
        Communicator now = communicator;
        if (now == null) {
            throw MPIException.of(Abi.MPI_ERR_COMM, "the communicator, or the world, was closed");
        }
        return now;
    }

    /** The engine's communicator, after which there is none. */
    final Communicator end() {
        Communicator last = communicator;
        communicator = null;
        return last;
    }

    // --- calls ---

    private String where(String call) {
        return call + " on rank " + rank;
    }

    /** The exception for the program. */
    static LimosaException told(String where, MPIException e) {
        return Errors.of(e.getErrorClass(), where + ": " + e.getMessage(), e.getCause());
    }

    /** Does what may wait. */
    final <T> T call(String name, Supplier<T> action) {
        try {
            return action.get();
        } catch (MPIException e) {
            throw told(where(name), e);
        }
    }

    final void call(String name, Runnable action) {
        call(name, () -> {
            action.run();
            return null;
        });
    }

    /** The result of a transfer, for a virtual thread, which can wait for it at no cost. */
    private static <T> T result(CompletableFuture<T> transfer) {
        try {
            return transfer.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
    }

    // --- checks ---

    private void checkDest(int to, int tag) {
        if ((to < 0 || to >= size) && to != Rank.NONE) {
            throw MPIException.of(
                    Abi.MPI_ERR_RANK, "there is no destination " + to + "; ranks are 0 to " + (size - 1));
        }
        checkTag(tag);
    }

    private void checkTag(int tag) {
        if (tag < 0 || tag > home.largestTag) {
            throw MPIException.of(Abi.MPI_ERR_TAG, "the tag is " + tag + "; tags are 0 to " + home.largestTag);
        }
    }

    private void checkSource(int source, int tag) {
        if ((source < 0 || source >= size) && source != Rank.NONE && source != Source.ANY) {
            throw MPIException.of(
                    Abi.MPI_ERR_RANK, "there is no source " + source + "; ranks are 0 to " + (size - 1));
        }
        if (tag != Tag.ANY) {
            checkTag(tag);
        }
    }

    private static <T> void checkClass(Class<T> type) {
        if (type == null) {
            throw MPIException.of(Abi.MPI_ERR_TYPE, "the class is null");
        }
        if (type == MemorySegment.class || java.nio.Buffer.class.isAssignableFrom(type) || type == Slice.class) {
            throw MPIException.of(Abi.MPI_ERR_TYPE, "a " + type.getSimpleName()
                    + " cannot be made for a message; receive into one that exists, with receiveInto");
        }
    }

    // --- sending ---

    /** Sends with tag 0. See {@link #send(Object, int, int)}. */
    public void send(Object value, int to) {
        send(value, to, 0);
    }

    /**
     * Sends a message ({@code MPI_Send}). It may wait until the message is received. The value can be changed
     * afterwards.
     *
     * @param value an array of a primitive type, a {@link Slice}, a buffer of {@code java.nio} (from its position to
     *     its limit) or a {@link MemorySegment}, whose elements are sent as they are; or any object that is
     *     serializable
     * @param to the rank that receives it
     * @param tag a number that tells messages apart
     * @throws LimosaException if an argument is wrong, before anything is sent
     */
    public void send(Object value, int to, int tag) {
        if (Thread.currentThread().isVirtual()) {
            result(startSend("send", value, to, tag));
            return;
        }
        try {
            Communicator now = communicator();
            checkDest(to, tag);
            Elements elements = Elements.of(value);
            if (elements != null) {
                if (to != Rank.NONE) {
                    now.send(elements.memory(), elements.type(), to, tag, Mode.STANDARD);
                }
                return;
            }
            byte[] bytes = Values.write(value);
            if (to != Rank.NONE) {
                now.send(home.objects.begin(hidden, to, bytes), Type.BYTE, to, tag, Mode.STANDARD);
            }
        } catch (MPIException e) {
            throw told(where("send"), e);
        }
    }

    /** Starts to send with tag 0. See {@link #sendAsync(Object, int, int)}. */
    public CompletableFuture<Void> sendAsync(Object value, int to) {
        return sendAsync(value, to, 0);
    }

    /**
     * Starts to send a message ({@code MPI_Isend}). Arrays and objects can be changed at once; direct buffers and
     * native memory must stay as they are until the future is complete.
     *
     * @param value as for {@link #send(Object, int, int)}
     * @param to the rank that receives it
     * @param tag a number that tells messages apart
     * @return a future that is complete when the message has left; it cannot be cancelled
     * @throws LimosaException if an argument is wrong, before anything is sent
     */
    public CompletableFuture<Void> sendAsync(Object value, int to, int tag) {
        return startSend("sendAsync", value, to, tag);
    }

    private CompletableFuture<Void> startSend(String name, Object value, int to, int tag) {
        try {
            Communicator now = communicator();
            checkDest(to, tag);
            Elements elements = Elements.of(value);
            byte[] bytes = elements == null ? Values.write(value) : null;
            if (to == Rank.NONE) {
                return CompletableFuture.completedFuture(null);
            }
            Operation operation = elements != null
                    ? now.startSend(elements.memory(), elements.type(), to, tag, Mode.STANDARD)
                    : now.startSend(home.objects.begin(hidden, to, bytes), Type.BYTE, to, tag, Mode.STANDARD);
            return started(new Transfer<Void>(home.waiter, where(name), operation, false) {
                @Override
                Operation next(Envelope envelope) {
                    return null;
                }
            });
        } catch (MPIException e) {
            throw told(where(name), e);
        }
    }

    private <T> CompletableFuture<T> started(Transfer<T> transfer) {
        if (!transfer.isCompleteNow()) {
            home.waiter.add(transfer);
        }
        return transfer;
    }

    // --- receiving ---

    /** Receives from any rank, with any tag. See {@link #receive(Class, int, int)}. */
    public <T> T receive(Class<T> type) {
        return receive(type, Source.ANY, Tag.ANY);
    }

    /** Receives from a rank, with any tag. See {@link #receive(Class, int, int)}. */
    public <T> T receive(Class<T> type, int source) {
        return receive(type, source, Tag.ANY);
    }

    /**
     * Receives a value ({@code MPI_Mprobe}, {@code MPI_Mrecv}).
     *
     * @param type the class that is expected, such as {@code String.class}, a record, or {@code double[].class}. An
     *     array gets the length of the message; one that was sent with other elements of the same size is not told
     * @param source the rank that sends it, or {@link Source#ANY}
     * @param tag the tag with which it was sent, or {@link Tag#ANY}
     * @return the value; null if the source is {@link Rank#NONE}
     * @param <T> the class
     * @throws Errors.MismatchException if a value of another class has come; it is lost
     * @throws LimosaException if an argument is wrong, or the object filter has rejected the value
     */
    public <T> T receive(Class<T> type, int source, int tag) {
        return receiveMessage(type, source, tag).value();
    }

    /**
     * As {@link #receive(Class, int, int)}, with the source and the tag of the message.
     *
     * @param type the class that is expected
     * @param source the rank that sends it, or {@link Source#ANY}
     * @param tag the tag with which it was sent, or {@link Tag#ANY}
     * @return the message
     * @param <T> the class
     */
    public <T> Received<T> receiveMessage(Class<T> type, int source, int tag) {
        boolean isArray = type != null && type.isArray() && Elements.type(type.getComponentType()) != null;
        if (Thread.currentThread().isVirtual() && !isArray) {
            return result(startReceive("receive", type, source, tag, Function.identity()));
        }
        return call("receive", () -> {
            Communicator now = communicator();
            checkClass(type);
            checkSource(source, tag);
            if (source == Rank.NONE) {
                return Received.nothing(null);
            }
            Taken taken = now.take(source, tag, true);
            return isArray ? array(type, taken) : value(type, taken);
        });
    }

    private <T> Received<T> value(Class<T> type, Taken taken) {
        Envelope envelope = taken.envelope();
        byte[] message = new byte[length(envelope.bytes())];
        taken.receive(MemorySegment.ofArray(message));
        if (!ObjectSends.Stream.isIn(message, message.length)) {
            throw new Errors.MismatchException(where("receive") + ": elements of an array have come (" + message.length
                    + " bytes), but " + type.getTypeName() + " was asked for");
        }
        return read("receive", type, all(message, envelope), envelope);
    }

    /** The stream of a value of which the first message has come. */
    private byte[] all(byte[] message, Envelope envelope) {
        ObjectSends.Stream stream = ObjectSends.Stream.of(message, envelope.bytes());
        if (!stream.isComplete()) {
            stream.rest(hidden, envelope.source()).await();
        }
        return stream.bytes();
    }

    private <T> Received<T> read(String name, Class<T> type, byte[] stream, Envelope envelope) {
        Object value = Values.read(stream);
        Class<?> wrapped = MethodType.methodType(type).wrap().returnType();
        if (!wrapped.isInstance(value)) {
            throw new Errors.MismatchException(where(name) + ": a value of class " + value.getClass().getTypeName()
                    + " has come, but " + type.getTypeName() + " was asked for");
        }
        @SuppressWarnings("unchecked")
        T checked = (T) value;
        return new Received<>(checked, envelope.source(), envelope.tag(), 1);
    }

    /** The length of an array for elements that have come. */
    private static int length(long elements) {
        if (elements > Integer.MAX_VALUE) {
            throw MPIException.of(Abi.MPI_ERR_COUNT, "a message of " + elements + " elements has come, which is longer "
                    + "than an array; receive it with receiveInto into a MemorySegment");
        }
        return (int) elements;
    }

    private <T> Received<T> array(Class<T> type, Taken taken) {
        Envelope envelope = taken.envelope();
        Type base = Elements.type(type.getComponentType());
        if (envelope.bytes() % base.bytes != 0) {
            byte[] lost = new byte[length(envelope.bytes())];
            taken.receive(MemorySegment.ofArray(lost));
            refuseValue("receive", MemorySegment.ofArray(lost), envelope);
            throw new Errors.MismatchException(where("receive") + ": a message of " + lost.length
                    + " bytes has come, which are no whole elements of " + type.getTypeName());
        }
        T array = type.cast(Elements.allocate(base, length(envelope.bytes() / base.bytes)));
        Elements elements = Elements.of(array);
        taken.receive(elements.memory(), base);
        refuseValue("receive", elements.memory(), envelope);
        elements.finish();
        return new Received<>(array, envelope.source(), envelope.tag(), (int) elements.count());
    }

    /** What has come must be elements, not an object. */
    private void refuseValue(String name, MemorySegment memory, Envelope envelope) {
        if (ObjectSends.Stream.isIn(memory, envelope.bytes())) {
            byte[] message = memory.asSlice(0, envelope.bytes()).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
            String type = Values.read(all(message, envelope)).getClass().getTypeName();
            throw new Errors.MismatchException(where(name) + ": an object of class " + type
                    + " has come, but elements were asked for; receive it with receive(Class)");
        }
    }

    /** Receives from any rank, with any tag. See {@link #receiveInto(Object, int, int)}. */
    public <B> Received<B> receiveInto(B buffer) {
        return receiveInto(buffer, Source.ANY, Tag.ANY);
    }

    /** Receives from a rank, with any tag. See {@link #receiveInto(Object, int, int)}. */
    public <B> Received<B> receiveInto(B buffer, int source) {
        return receiveInto(buffer, source, Tag.ANY);
    }

    /**
     * Receives elements where they are to be ({@code MPI_Recv}). The message may be shorter than the buffer, whose
     * other elements stay as they are.
     *
     * @param buffer an array of a primitive type, a {@link Slice}, a buffer of {@code java.nio} or a
     *     {@link MemorySegment}
     * @param source the rank that sends them, or {@link Source#ANY}
     * @param tag the tag with which they were sent, or {@link Tag#ANY}
     * @return the buffer, the source, the tag and the number of elements that have come
     * @param <B> the class of the buffer
     * @throws Errors.TruncationException if the message is longer than the buffer; it is lost
     * @throws Errors.MismatchException if an object has come; it is lost
     * @throws LimosaException if an argument is wrong
     */
    public <B> Received<B> receiveInto(B buffer, int source, int tag) {
        if (Thread.currentThread().isVirtual()) {
            return result(startReceiveInto("receiveInto", buffer, source, tag));
        }
        try {
            Communicator now = communicator();
            checkSource(source, tag);
            Elements elements = Elements.writable("buffer", buffer);
            if (source == Rank.NONE) {
                return Received.nothing(buffer);
            }
            Envelope envelope = now.receive(elements.memory(), elements.type(), source, tag);
            return arrived("receiveInto", buffer, elements, envelope);
        } catch (MPIException e) {
            throw told(where("receiveInto"), e);
        }
    }

    private <B> Received<B> arrived(String name, B buffer, Elements elements, Envelope envelope) {
        refuseValue(name, elements.memory(), envelope);
        elements.finish(envelope.bytes());
        long count = envelope.bytes() / elements.type().bytes;
        return new Received<>(buffer, envelope.source(), envelope.tag(), (int) Math.min(count, Integer.MAX_VALUE));
    }

    /** Starts to receive from any rank. See {@link #receiveIntoAsync(Object, int, int)}. */
    public <B> CompletableFuture<Received<B>> receiveIntoAsync(B buffer) {
        return receiveIntoAsync(buffer, Source.ANY, Tag.ANY);
    }

    /** Starts to receive from a rank. See {@link #receiveIntoAsync(Object, int, int)}. */
    public <B> CompletableFuture<Received<B>> receiveIntoAsync(B buffer, int source) {
        return receiveIntoAsync(buffer, source, Tag.ANY);
    }

    /**
     * Starts to receive elements ({@code MPI_Irecv}). The buffer must not be used until the future is complete.
     *
     * @param buffer as for {@link #receiveInto(Object, int, int)}
     * @param source the rank that sends them, or {@link Source#ANY}
     * @param tag the tag with which they were sent, or {@link Tag#ANY}
     * @return a future of what {@code receiveInto} returns. It completes by itself. {@code cancel} withdraws the
     *     receive if no message has come for it, and says whether it did; so do {@code complete} and
     *     {@code completeExceptionally}, and {@code orTimeout} and {@code completeOnTimeout} when the time is over
     * @param <B> the class of the buffer
     * @throws LimosaException if an argument is wrong
     */
    public <B> CompletableFuture<Received<B>> receiveIntoAsync(B buffer, int source, int tag) {
        return startReceiveInto("receiveIntoAsync", buffer, source, tag);
    }

    private <B> CompletableFuture<Received<B>> startReceiveInto(String name, B buffer, int source, int tag) {
        try {
            Communicator now = communicator();
            checkSource(source, tag);
            Elements elements = Elements.writable("buffer", buffer);
            if (source == Rank.NONE) {
                return CompletableFuture.completedFuture(Received.nothing(buffer));
            }
            Operation operation = now.startReceive(elements.memory(), elements.type(), source, tag);
            return started(new Transfer<Received<B>>(home.waiter, where(name), operation, true) {
                @Override
                Operation next(Envelope envelope) {
                    result(arrived(name, buffer, elements, envelope));
                    return null;
                }
            });
        } catch (MPIException e) {
            throw told(where(name), e);
        }
    }

    /** Starts to receive from any rank. See {@link #receiveAsync(Class, int, int)}. */
    public <T> CompletableFuture<T> receiveAsync(Class<T> type) {
        return receiveAsync(type, Source.ANY, Tag.ANY);
    }

    /** Starts to receive from a rank. See {@link #receiveAsync(Class, int, int)}. */
    public <T> CompletableFuture<T> receiveAsync(Class<T> type, int source) {
        return receiveAsync(type, source, Tag.ANY);
    }

    /**
     * Starts to receive a value that is no array of a primitive type: for these see {@code receiveIntoAsync}, since the
     * length of a message is not known before it has come.
     *
     * @param type the class that is expected
     * @param source the rank that sends it, or {@link Source#ANY}
     * @param tag the tag with which it was sent, or {@link Tag#ANY}
     * @return a future of the value. It completes by itself, or is withdrawn, as that of
     *     {@link #receiveIntoAsync(Object, int, int)}
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> CompletableFuture<T> receiveAsync(Class<T> type, int source, int tag) {
        return startReceive("receiveAsync", type, source, tag, Received::value);
    }

    /**
     * As {@link #receiveAsync(Class, int, int)}, with the source and the tag of the message.
     *
     * @param type the class that is expected
     * @param source the rank that sends it, or {@link Source#ANY}
     * @param tag the tag with which it was sent, or {@link Tag#ANY}
     * @return a future of the message
     * @param <T> the class
     */
    public <T> CompletableFuture<Received<T>> receiveMessageAsync(Class<T> type, int source, int tag) {
        return startReceive("receiveMessageAsync", type, source, tag, Function.identity());
    }

    private <T, R> CompletableFuture<R> startReceive(
            String name, Class<T> type, int source, int tag, Function<Received<T>, R> shown) {
        try {
            Communicator now = communicator();
            checkClass(type);
            checkSource(source, tag);
            if (type.isArray() && type.getComponentType().isPrimitive()) {
                throw MPIException.of(Abi.MPI_ERR_TYPE, "the length of an array is not known before it has come; give "
                        + "an array to receiveIntoAsync, or wait with receive");
            }
            if (source == Rank.NONE) {
                return CompletableFuture.completedFuture(shown.apply(Received.nothing(null)));
            }
            byte[] first = new byte[ObjectSends.WHOLE];
            Operation operation = now.startReceive(MemorySegment.ofArray(first), Type.BYTE, source, tag);
            return started(new ValueTransfer<>(name, type, shown, first, operation));
        } catch (MPIException e) {
            throw told(where(name), e);
        }
    }

    /** A receive of a value: of its first message, and then of the rest. */
    private final class ValueTransfer<T, R> extends Transfer<R> {
        private final String name;
        private final Class<T> type;
        private final Function<Received<T>, R> shown;
        private final byte[] message;
        private Envelope first;
        private ObjectSends.Stream stream;

        ValueTransfer(String name, Class<T> type, Function<Received<T>, R> shown, byte[] message, Operation operation) {
            super(home.waiter, where(name), operation, true);
            this.name = name;
            this.type = type;
            this.shown = shown;
            this.message = message;
        }

        @Override
        Operation next(Envelope envelope) {
            if (stream == null) {
                first = envelope;
                if (!ObjectSends.Stream.isIn(message, envelope.bytes())) {
                    throw new Errors.MismatchException(where(name) + ": elements of an array have come ("
                            + envelope.bytes() + " bytes), but " + type.getTypeName() + " was asked for");
                }
                stream = ObjectSends.Stream.of(message, envelope.bytes());
                if (!stream.isComplete()) {
                    return stream.rest(hidden, envelope.source());
                }
            }
            result(shown.apply(read(name, type, stream.bytes(), first)));
            return null;
        }
    }

    // --- both ---

    /** Sends and receives with tag 0. See {@link #sendReceive(Object, int, Class, int, int)}. */
    public <T> T sendReceive(Object value, int to, Class<T> type, int source) {
        return sendReceive(value, to, type, source, 0);
    }

    /**
     * Sends to one rank while it receives from another ({@code MPI_Sendrecv}).
     *
     * @param value as for {@link #send(Object, int, int)}
     * @param to the rank that receives it
     * @param type the class that is expected
     * @param source the rank that sends to this one
     * @param tag the tag of both messages
     * @return the value that has come
     * @param <T> its class
     * @throws LimosaException as {@code send} and {@code receive}
     */
    public <T> T sendReceive(Object value, int to, Class<T> type, int source, int tag) {
        checked("sendReceive", () -> {
            checkClass(type);
            checkSource(source, tag);
        });
        CompletableFuture<Void> sent = startSend("sendReceive", value, to, tag);
        T received = receive(type, source, tag);
        result(sent);
        return received;
    }

    /** Sends and receives with tag 0. See {@link #sendReceiveInto(Object, int, Object, int, int)}. */
    public <B> Received<B> sendReceiveInto(Object value, int to, B buffer, int source) {
        return sendReceiveInto(value, to, buffer, source, 0);
    }

    /**
     * As {@link #sendReceive(Object, int, Class, int, int)}, into a buffer.
     *
     * @param value as for {@link #send(Object, int, int)}
     * @param to the rank that receives it
     * @param buffer as for {@link #receiveInto(Object, int, int)}; it may be the same as the value
     * @param source the rank that sends to this one
     * @param tag the tag of both messages
     * @return what has come
     * @param <B> the class of the buffer
     */
    public <B> Received<B> sendReceiveInto(Object value, int to, B buffer, int source, int tag) {
        checked("sendReceiveInto", () -> {
            checkSource(source, tag);
            checkDest(to, tag);
        });
        return call("sendReceiveInto", () -> {
            Elements out = Elements.writable("buffer", buffer);
            Elements in = Elements.of(value);
            if (in == null || source == Rank.NONE || to == Rank.NONE) {
                CompletableFuture<Void> sent = startSend("sendReceiveInto", value, to, tag);
                Received<B> received = receiveInto(buffer, source, tag);
                result(sent);
                return received;
            }
            Envelope envelope = communicator().exchange(
                    in.memory(), in.type(), to, tag, out.memory(), out.type(), source, tag);
            return arrived("sendReceiveInto", buffer, out, envelope);
        });
    }

    private void checked(String name, Runnable checks) {
        try {
            checks.run();
        } catch (MPIException e) {
            throw told(where(name), e);
        }
    }
}
