package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.blocking;
import static org.limosa.engine.library.Calls.check;
import static org.limosa.engine.library.Calls.number;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.limosa.abi.Abi;
import org.limosa.engine.Lease;
import org.limosa.engine.Members;
import org.limosa.engine.Operation;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;
import org.limosa.engine.Window;

/** A window of the MPI library. */
final class LibraryWindow implements Window {
    private final long handle;
    /** Neither collected nor freed as long as others can use it. */
    private final MemorySegment memory;

    LibraryWindow(long comm, MemorySegment memory, int unit) {
        this.memory = memory;
        Lease.begin(memory);
        MemorySegment results = Calls.results();
        blocking(() -> Abi.MPI_Win_create_c(
                memory, memory.byteSize(), unit, Abi.MPI_INFO_NULL, comm, Calls.handleOf(results)));
        handle = Calls.handle(results);
        check(Abi.MPI_Win_set_errhandler(handle, Abi.MPI_ERRORS_RETURN));
    }

    private static long count(MemorySegment data, Type type) {
        return data.byteSize() / type.bytes;
    }

    private static long change(MemorySegment data, Reduction reduction) {
        return data == null ? Abi.MPI_NO_OP : reduction == null ? Abi.MPI_REPLACE : Calls.operation(reduction);
    }

    private static MemorySegment orNull(MemorySegment data) {
        return data == null ? MemorySegment.NULL : data;
    }

    @Override
    public Members members() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Win_get_group(handle, Calls.handleOf(results)));
        return new LibraryMembers(Calls.handle(results));
    }

    // --- accesses ---

    @Override
    public void put(MemorySegment data, Type type, int target, long displacement) {
        long n = count(data, type);
        check(Abi.MPI_Put_c(data, n, number(type), target, displacement, n, number(type), handle));
    }

    @Override
    public void get(MemorySegment data, Type type, int target, long displacement) {
        long n = count(data, type);
        check(Abi.MPI_Get_c(data, n, number(type), target, displacement, n, number(type), handle));
    }

    @Override
    public void accumulate(MemorySegment data, Type type, int target, long displacement, Reduction reduction) {
        long n = count(data, type);
        check(Abi.MPI_Accumulate_c(
                data, n, number(type), target, displacement, n, number(type), change(data, reduction), handle));
    }

    @Override
    public void getAccumulate(
            MemorySegment data, MemorySegment result, Type type, int target, long displacement, Reduction reduction) {
        long n = count(result, type);
        check(Abi.MPI_Get_accumulate_c(
                orNull(data), data == null ? 0 : n, number(type), result, n, number(type), target, displacement, n,
                number(type), change(data, reduction), handle));
    }

    @Override
    public void compareAndSwap(
            MemorySegment data, MemorySegment compare, MemorySegment result, Type type, int target, long displacement) {
        check(Abi.MPI_Compare_and_swap(data, compare, result, number(type), target, displacement, handle));
    }

    private static Operation begin(LibraryNonBlocking.Starter starter, MemorySegment... used) {
        Held held = new Held();
        for (MemorySegment each : used) {
            if (each != null) {
                held.keep(each);
            }
        }
        return LibraryNonBlocking.begin(held, starter);
    }

    @Override
    public Operation startPut(MemorySegment data, Type type, int target, long displacement) {
        long n = count(data, type);
        return begin(request -> Abi.MPI_Rput_c(
                data, n, number(type), target, displacement, n, number(type), handle, request), data);
    }

    @Override
    public Operation startGet(MemorySegment data, Type type, int target, long displacement) {
        long n = count(data, type);
        return begin(request -> Abi.MPI_Rget_c(
                data, n, number(type), target, displacement, n, number(type), handle, request), data);
    }

    @Override
    public Operation startAccumulate(
            MemorySegment data, Type type, int target, long displacement, Reduction reduction) {
        long n = count(data, type);
        return begin(request -> Abi.MPI_Raccumulate_c(
                data, n, number(type), target, displacement, n, number(type), change(data, reduction), handle, request),
                data);
    }

    @Override
    public Operation startGetAccumulate(
            MemorySegment data, MemorySegment result, Type type, int target, long displacement, Reduction reduction) {
        long n = count(result, type);
        return begin(request -> Abi.MPI_Rget_accumulate_c(
                orNull(data), data == null ? 0 : n, number(type), result, n, number(type), target, displacement, n,
                number(type), change(data, reduction), handle, request), data, result);
    }

    // --- epochs ---

    @Override
    public void fence(int assertion) {
        blocking(() -> Abi.MPI_Win_fence(assertion, handle));
    }

    @Override
    public void start(Members targets, int assertion) {
        blocking(() -> Abi.MPI_Win_start(((LibraryMembers) targets).handle, assertion, handle));
    }

    @Override
    public void complete() {
        blocking(() -> Abi.MPI_Win_complete(handle));
    }

    @Override
    public void post(Members origins, int assertion) {
        blocking(() -> Abi.MPI_Win_post(((LibraryMembers) origins).handle, assertion, handle));
    }

    @Override
    public void await() {
        blocking(() -> Abi.MPI_Win_wait(handle));
    }

    @Override
    public boolean test() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Win_test(handle, Calls.flagOf(results)));
        return Calls.flag(results) != 0;
    }

    @Override
    public void lock(boolean exclusive, int target, int assertion) {
        int kind = exclusive ? Abi.MPI_LOCK_EXCLUSIVE : Abi.MPI_LOCK_SHARED;
        blocking(() -> Abi.MPI_Win_lock(kind, target, assertion, handle));
    }

    @Override
    public void unlock(int target) {
        blocking(() -> Abi.MPI_Win_unlock(target, handle));
    }

    @Override
    public void lockAll(int assertion) {
        blocking(() -> Abi.MPI_Win_lock_all(assertion, handle));
    }

    @Override
    public void unlockAll() {
        blocking(() -> Abi.MPI_Win_unlock_all(handle));
    }

    @Override
    public void flush(int target, boolean locally) {
        if (target == ALL) {
            blocking(() -> locally ? Abi.MPI_Win_flush_local_all(handle) : Abi.MPI_Win_flush_all(handle));
        } else {
            blocking(() -> locally ? Abi.MPI_Win_flush_local(target, handle) : Abi.MPI_Win_flush(target, handle));
        }
    }

    @Override
    public void sync() {
        check(Abi.MPI_Win_sync(handle));
    }

    @Override
    public void free() {
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, handle);
        blocking(() -> Abi.MPI_Win_free(Calls.handleOf(results)));
        Lease.end(memory);
    }
}
