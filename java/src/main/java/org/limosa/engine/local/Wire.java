package org.limosa.engine.local;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** A connection whose other end knows the key of the job. */
final class Wire implements AutoCloseable {
    private static final int BUFFER = 80 << 10;
    /** How long a connection may take to come about, in milliseconds. */
    private static final int PATIENCE = 10_000;
    private static final long PAUSE = 50_000_000;

    final DataInputStream in;
    final DataOutputStream out;
    private final Socket socket;

    private Wire(Socket socket, byte[] key, boolean calls) throws IOException {
        this.socket = socket;
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), BUFFER));
        out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), BUFFER));
        Handshake.prove(socket, in, out, key, calls);
    }

    /** As {@link #call}, when the other end may not be there yet. */
    static Wire callUntilThere(String host, int port, byte[] key) throws IOException {
        long end = System.nanoTime() + PATIENCE * 1_000_000L;
        for (;;) {
            try {
                return call(host, port, key);
            } catch (IOException e) {
                if (!(e.getCause() instanceof ConnectException) || System.nanoTime() > end) {
                    throw e;
                }
            }
            LockSupport.parkNanos(PAUSE);
        }
    }

    static Wire call(String host, int port, byte[] key) throws IOException {
        Socket socket = new Socket();
        try {
            socket.connect(new InetSocketAddress(InetAddress.getByName(host), port), PATIENCE);
            return new Wire(socket, key, true);
        } catch (IOException e) {
            socket.close();
            throw new IOException("no connection to " + host + " port " + port + ": " + e.getMessage(), e);
        }
    }

    /** Accepts connections until the server is closed. Those of strangers are dropped, and delay no rank. */
    static void acceptAll(ServerSocket server, byte[] key, Consumer<Wire> found) {
        daemon("limosa-accept", () -> {
            while (!server.isClosed()) {
                try {
                    Socket socket = server.accept();
                    daemon("limosa-handshake", () -> greet(socket, key, found));
                } catch (IOException e) {
                    // It is closed, or the caller has gone.
                }
            }
        });
    }

    private static void greet(Socket socket, byte[] key, Consumer<Wire> found) {
        try {
            found.accept(new Wire(socket, key, false));
        } catch (IOException e) {
            try {
                socket.close();
            } catch (IOException again) {
                // It is of no use anyway.
            }
        }
    }

    /** Starts a thread that does not keep the machine alive. */
    static void daemon(String name, Runnable body) {
        Thread thread = new Thread(null, body, name);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
