package org.limosa.engine.local;

import java.io.IOException;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import mpi.MPIException;

/** The connections of a Java machine to the others of its job: one to each. */
final class Network {
    /** How long an abort may take to reach the others, and an answer to come, in milliseconds. */
    private static final long PATIENCE = 1000;

    private final List<Rendezvous.Machine> machines;
    private final int own;
    private final Connection[] connections;
    /** Writes what threads that read have to write: those never wait, or two machines could wait for each other. */
    private final ExecutorService answers = Executors.newSingleThreadExecutor(body -> {
        Thread thread = new Thread(null, body, "limosa-answers");
        thread.setDaemon(true);
        return thread;
    });

    private Network(List<Rendezvous.Machine> machines, int own) {
        this.machines = machines;
        this.own = own;
        connections = new Connection[machines.size()];
    }

    /** Connects to the other machines of the list: calls those before the own one, and is called by the rest. */
    static LocalJob connect(List<Rendezvous.Machine> machines, int first, ServerSocket server, byte[] key)
            throws IOException {
        int own = 0;
        while (machines.get(own).first() != first) {
            own++;
        }
        Network network = new Network(machines, own);
        CountDownLatch missing = new CountDownLatch(machines.size() - 1 - own);
        Wire.acceptAll(server, key, wire -> network.called(wire, missing));
        for (int other = 0; other < own; other++) {
            Wire wire = Wire.call(machines.get(other).host(), machines.get(other).port(), key);
            wire.out.writeInt(own);
            wire.out.flush();
            network.add(other, wire);
        }
        try {
            missing.await();
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        int ranks = machines.stream().mapToInt(Rendezvous.Machine::ranks).sum();
        LocalJob job = new LocalJob(ranks, first, machines.get(own).ranks(), network);
        network.all().forEach(each -> each.start(job));
        return job;
    }

    private void called(Wire wire, CountDownLatch missing) {
        try {
            add(wire.in.readInt(), wire);
            missing.countDown();
        } catch (IOException e) {
            // It has gone; its launcher says so.
        }
    }

    private void add(int other, Wire wire) {
        connections[other] = new Connection(machines.get(other), wire, answers);
    }

    private Stream<Connection> all() {
        return Stream.of(connections).filter(each -> each != null);
    }

    /** What takes messages to a rank of another machine. */
    Post post(int number) {
        int other = 0;
        while (number >= machines.get(other).first() + machines.get(other).ranks()) {
            other++;
        }
        Connection connection = connections[other];
        return (send, from, isSynchronous) -> connection.deliver(number, send, from, isSynchronous);
    }

    /** What all ranks do, with those of this machine; null if a rank can go on, or a machine has no time to answer. */
    MachineLook look(MachineLook own) {
        try {
            List<CompletableFuture<MachineLook>> others = all().map(Connection::look).toList();
            List<MachineLook> looks = new ArrayList<>(List.of(own));
            for (CompletableFuture<MachineLook> each : others) {
                MachineLook look = each.get(PATIENCE, TimeUnit.MILLISECONDS);
                if (look == null) {
                    return null;
                }
                looks.add(look);
            }
            return MachineLook.together(looks);
        } catch (MPIException | ExecutionException | TimeoutException e) {
            // One has gone, or has much to do.
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /** Tells the others that nothing more comes, behind all that was to be sent. */
    void leave() {
        try {
            answers.submit(() -> all().forEach(Connection::leave)).get(PATIENCE, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException e) {
            // Those that cannot be told have ended.
        }
    }

    /** Tells the others to end, as far as they can be reached soon. */
    void abort(int code) {
        Thread telling = new Thread(null, () -> all().forEach(each -> each.abort(code)), "limosa-abort");
        telling.setDaemon(true);
        telling.start();
        try {
            telling.join(PATIENCE);
        } catch (InterruptedException e) {
            // The caller ends the machine at once.
        }
    }
}
