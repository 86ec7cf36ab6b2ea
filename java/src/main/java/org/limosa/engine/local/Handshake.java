package org.limosa.engine.local;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Both ends of a connection show that they know the key of the job; it is never sent. */
final class Handshake {
    /** Data are sent in the byte order of the machine, which must be that of the other one. */
    private static final long MAGIC =
            ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? 0x4c494d4f_4a415642L : 0x4c494d4f_4a41564cL;
    private static final int NONCE = 32;
    private static final String METHOD = "HmacSHA256";
    /** How long the other end may take, in milliseconds. */
    private static final int PATIENCE = 10_000;

    private Handshake() {}

    /** Fails if the other end does not know the key. */
    static void prove(Socket socket, DataInputStream in, DataOutputStream out, byte[] key, boolean calls)
            throws IOException {
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(PATIENCE);
        byte[] mine = new byte[NONCE];
        new SecureRandom().nextBytes(mine);
        out.writeLong(MAGIC);
        out.write(mine);
        out.flush();
        if (in.readLong() != MAGIC) {
            throw new IOException("the other end is no part of a job, or has another byte order");
        }
        byte[] theirs = in.readNBytes(NONCE);
        out.write(proof(key, calls, mine, theirs));
        out.flush();
        byte[] expected = proof(key, !calls, theirs, mine);
        if (!MessageDigest.isEqual(expected, in.readNBytes(expected.length))) {
            throw new IOException("the other end does not know the key of the job");
        }
        socket.setSoTimeout(0);
    }

    private static byte[] proof(byte[] key, boolean calls, byte[] own, byte[] other) {
        try {
            Mac mac = Mac.getInstance(METHOD);
            mac.init(new SecretKeySpec(key, METHOD));
            mac.update((byte) (calls ? 1 : 0));
            mac.update(own);
            return mac.doFinal(other);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }
}
