package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.limosa.abi.Abi;
import org.limosa.engine.Members;

/** A group of the MPI library. */
final class LibraryMembers implements Members {
    final long handle;

    LibraryMembers(long handle) {
        this.handle = handle;
    }

    @Override
    public int size() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Group_size(handle, Calls.flagOf(results)));
        return Calls.flag(results);
    }

    @Override
    public int rank() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Group_rank(handle, Calls.flagOf(results)));
        int rank = Calls.flag(results);
        return rank == Abi.MPI_UNDEFINED ? NONE : rank;
    }

    @Override
    public int[] translate(int[] ranks, Members to) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment from = arena.allocateFrom(ValueLayout.JAVA_INT, ranks);
            MemorySegment found = arena.allocate(ValueLayout.JAVA_INT, Math.max(1, ranks.length));
            check(Abi.MPI_Group_translate_ranks(handle, ranks.length, from, ((LibraryMembers) to).handle, found));
            int[] result = found.asSlice(0, 4L * ranks.length).toArray(ValueLayout.JAVA_INT);
            for (int i = 0; i < result.length; i++) {
                result[i] = result[i] == Abi.MPI_UNDEFINED ? NONE : result[i];
            }
            return result;
        }
    }

    @Override
    public Members include(int[] ranks) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = Calls.handleOf(Calls.results());
            check(Abi.MPI_Group_incl(handle, ranks.length, arena.allocateFrom(ValueLayout.JAVA_INT, ranks), made));
            return new LibraryMembers(Calls.handle(Calls.results()));
        }
    }

    @Override
    public Members union(Members other) {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Group_union(handle, ((LibraryMembers) other).handle, Calls.handleOf(results)));
        return new LibraryMembers(Calls.handle(results));
    }

    @Override
    public void free() {
        if (handle != Abi.MPI_GROUP_EMPTY) {
            MemorySegment results = Calls.results();
            results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, handle);
            check(Abi.MPI_Group_free(Calls.handleOf(results)));
        }
    }
}
