package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;
import static org.limosa.engine.library.Calls.datatype;
import static org.limosa.engine.library.Calls.number;
import static org.limosa.engine.library.Calls.operation;

import java.lang.foreign.MemorySegment;
import org.limosa.abi.Abi;
import org.limosa.engine.NonBlocking;
import org.limosa.engine.Operation;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/** The non-blocking collective operations of a communicator of the MPI library. */
record LibraryNonBlocking(LibraryCommunicator on) implements NonBlocking {
    interface Starter {
        int start(MemorySegment request);
    }

    static Operation begin(Held held, Starter starter) {
        LibraryOperation operation = new LibraryOperation(held);
        MemorySegment results = Calls.results();
        int code = starter.start(Calls.handleOf(results));
        if (code != Abi.MPI_SUCCESS) {
            operation.failed();
        }
        check(code);
        operation.started(results);
        return operation;
    }

    private static long count(MemorySegment data, Type type) {
        return data == null ? 0 : data.byteSize() / type.bytes;
    }

    /** Where the caller's own part is among what is received, in bytes. */
    private long own(int[] displacements, Type type) {
        return displacements == null ? 0 : (long) displacements[on.rank()] * type.bytes;
    }

    @Override
    public Operation barrier() {
        return begin(new Held(), request -> Abi.MPI_Ibarrier(on.handle, request));
    }

    @Override
    public Operation broadcast(MemorySegment data, Type type, int root) {
        Held held = new Held();
        MemorySegment address = on.rank() == root ? held.input(data) : held.output(data);
        return begin(held, request -> Abi.MPI_Ibcast_c(
                address, count(data, type), datatype(type), root, on.handle, request));
    }

    @Override
    public Operation gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root) {
        Held held = new Held();
        MemorySegment in = held.input(sent, received, own(displacements, type));
        MemorySegment out = held.output(received, counts, displacements, type);
        return begin(held, request -> Abi.MPI_Igatherv_c(
                in, count(sent, type), datatype(type), out, held.numbers(counts), held.numbers(displacements),
                datatype(type), root, on.handle, request));
    }

    @Override
    public Operation scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root) {
        Held held = new Held();
        MemorySegment in = held.input(sent);
        boolean stays = LibraryCommunicator.overlap(sent, received)
                && received.address() == sent.address() + own(displacements, type);
        MemorySegment out = stays ? Abi.MPI_IN_PLACE : held.output(received);
        return begin(held, request -> Abi.MPI_Iscatterv_c(
                in, held.numbers(counts), held.numbers(displacements), datatype(type), out, count(received, type),
                datatype(type), root, on.handle, request));
    }

    @Override
    public Operation allGather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type) {
        Held held = new Held();
        MemorySegment in = held.input(sent, received, own(displacements, type));
        MemorySegment out = held.output(received, counts, displacements, type);
        return begin(held, request -> Abi.MPI_Iallgatherv_c(
                in, count(sent, type), datatype(type), out, held.numbers(counts), held.numbers(displacements),
                datatype(type), on.handle, request));
    }

    @Override
    public Operation allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type) {
        Held held = new Held();
        // A part is not where it stays: memory that is read and written is copied.
        MemorySegment in = held.input(sent, received, -1);
        MemorySegment out = held.output(received, receiveCounts, receiveDisplacements, type);
        return begin(held, request -> Abi.MPI_Ialltoallv_c(
                in, held.numbers(sendCounts), held.numbers(sendDisplacements), datatype(type), out,
                held.numbers(receiveCounts), held.numbers(receiveDisplacements), datatype(type), on.handle, request));
    }

    @Override
    public Operation reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root) {
        Held held = new Held();
        MemorySegment in = held.input(sent, received, 0);
        MemorySegment out = held.output(received);
        return begin(held, request -> Abi.MPI_Ireduce_c(
                in, out, count(sent, type), number(type), operation(reduction), root, on.handle, request));
    }

    @Override
    public Operation allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        Held held = new Held();
        MemorySegment in = held.input(sent, received, 0);
        MemorySegment out = held.output(received);
        return begin(held, request -> Abi.MPI_Iallreduce_c(
                in, out, count(sent, type), number(type), operation(reduction), on.handle, request));
    }

    @Override
    public Operation reduceScatter(
            MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction) {
        Held held = new Held();
        // What is received is shorter than what is sent, so it is not in place.
        MemorySegment in = held.input(sent, received, -1);
        MemorySegment out = held.output(received);
        return begin(held, request -> Abi.MPI_Ireduce_scatter_c(
                in, out, held.numbers(counts), number(type), operation(reduction), on.handle, request));
    }

    @Override
    public Operation scan(
            MemorySegment sent, MemorySegment received, Type type, Reduction reduction, boolean withOwn) {
        Held held = new Held();
        MemorySegment in = held.input(sent, received, 0);
        MemorySegment out = held.output(received);
        long count = count(sent, type);
        return begin(held, request -> withOwn
                ? Abi.MPI_Iscan_c(in, out, count, number(type), operation(reduction), on.handle, request)
                : Abi.MPI_Iexscan_c(in, out, count, number(type), operation(reduction), on.handle, request));
    }
}
