package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.limosa.abi.Abi;
import org.limosa.engine.Ports;

/** The ports of the MPI library. */
final class LibraryPorts implements Ports {
    @Override
    public String open() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(Abi.MPI_MAX_PORT_NAME);
            check(Abi.MPI_Open_port(Abi.MPI_INFO_NULL, name));
            return name.getString(0);
        }
    }

    @Override
    public void close(String port) {
        try (Arena arena = Arena.ofConfined()) {
            check(Abi.MPI_Close_port(arena.allocateFrom(port)));
        }
    }

    @Override
    public void publish(String service, String port) {
        try (Arena arena = Arena.ofConfined()) {
            check(Abi.MPI_Publish_name(arena.allocateFrom(service), Abi.MPI_INFO_NULL, arena.allocateFrom(port)));
        }
    }

    @Override
    public void unpublish(String service, String port) {
        try (Arena arena = Arena.ofConfined()) {
            check(Abi.MPI_Unpublish_name(arena.allocateFrom(service), Abi.MPI_INFO_NULL, arena.allocateFrom(port)));
        }
    }

    @Override
    public String lookUp(String service) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(Abi.MPI_MAX_PORT_NAME);
            check(Abi.MPI_Lookup_name(arena.allocateFrom(service), Abi.MPI_INFO_NULL, name));
            return name.getString(0);
        }
    }
}
