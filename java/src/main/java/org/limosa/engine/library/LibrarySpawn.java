package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator.Started;

/** Starts processes by the MPI library (MPI-5, section 11.8). */
final class LibrarySpawn {
    private LibrarySpawn() {}

    /** The handle of the communicator between the callers and what they have started. */
    static long start(long comm, List<Started> programs, int root, int[] errors) {
        int n = programs.size();
        int processes = programs.stream().mapToInt(Started::processes).sum();
        try (Arena arena = Calls.arena()) {
            MemorySegment commands = arena.allocate(ValueLayout.ADDRESS, Math.max(1, n));
            MemorySegment arguments = arena.allocate(ValueLayout.ADDRESS, Math.max(1, n));
            MemorySegment counts = arena.allocate(ValueLayout.JAVA_INT, Math.max(1, n));
            MemorySegment infos = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, n));
            for (int i = 0; i < n; i++) {
                Started program = programs.get(i);
                commands.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(program.command()));
                arguments.setAtIndex(ValueLayout.ADDRESS, i, texts(arena, program.arguments()));
                counts.setAtIndex(ValueLayout.JAVA_INT, i, program.processes());
                infos.setAtIndex(ValueLayout.JAVA_LONG, i, info(arena, program.hints()));
            }
            MemorySegment codes = arena.allocate(ValueLayout.JAVA_INT, Math.max(1, processes));
            MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
            int code = Calls.waiting(() -> Abi.MPI_Comm_spawn_multiple(
                    n, commands, arguments, counts, infos, root, comm, made, codes));
            free(infos, n);
            for (int i = 0; errors != null && i < Math.min(processes, errors.length); i++) {
                errors[i] = codes.getAtIndex(ValueLayout.JAVA_INT, i);
            }
            check(code);
            return made.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** The texts, and a null behind them. */
    private static MemorySegment texts(Arena arena, List<String> texts) {
        MemorySegment all = arena.allocate(ValueLayout.ADDRESS, texts.size() + 1L);
        for (int i = 0; i < texts.size(); i++) {
            all.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(texts.get(i)));
        }
        return all;
    }

    private static long info(Arena arena, Map<String, String> hints) {
        if (hints.isEmpty()) {
            return Abi.MPI_INFO_NULL;
        }
        MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
        check(Abi.MPI_Info_create(made));
        long info = made.get(ValueLayout.JAVA_LONG, 0);
        hints.forEach((key, value) -> check(
                Abi.MPI_Info_set(info, arena.allocateFrom(key), arena.allocateFrom(value))));
        return info;
    }

    private static void free(MemorySegment infos, int n) {
        for (int i = 0; i < n; i++) {
            if (infos.getAtIndex(ValueLayout.JAVA_LONG, i) != Abi.MPI_INFO_NULL) {
                check(Abi.MPI_Info_free(infos.asSlice((long) i * Long.BYTES, Long.BYTES)));
            }
        }
    }
}
