import java.util.Arrays;
import java.util.Random;
import mpi.Intracomm;
import mpi.MPI;

/**
 * IDEA: bytes are encrypted and decrypted, in blocks of 8 that are dealt to the processes. From the description of the
 * Java Grande Forum's MPJ benchmarks; as there, a factor of 0 stays 0.
 */
public class Crypt {
    private static final int[] SIZES = {3_000_000, 20_000_000, 50_000_000};
    private static final int ROUNDS = 8;
    private static final int MODULUS = 0x10001;
    private static final int KEYS = 52;

    private static int[] encryptionKeys() {
        Random random = new Random(136506717L);
        int[] z = new int[KEYS];
        for (int i = 0; i < 8; i++) {
            z[i] = random.nextInt() & 0xffff;
        }
        for (int i = 8; i < KEYS; i++) {
            int j = i % 8;
            int high = j == 7 ? z[i - 15] : z[i - 7];
            int low = j < 6 ? z[i - 6] : z[i - 14];
            z[i] = (high >> 9 | low << 7) & 0xffff;
        }
        return z;
    }

    /** The multiplicative inverse modulo 65537; 0 and 1 are their own. */
    private static int inverse(int x) {
        if (x <= 1) {
            return x;
        }
        long result = 1;
        long power = x;
        for (int exponent = MODULUS - 2; exponent > 0; exponent >>= 1) {
            if ((exponent & 1) == 1) {
                result = result * power % MODULUS;
            }
            power = power * power % MODULUS;
        }
        return (int) result & 0xffff;
    }

    private static int[] decryptionKeys(int[] z) {
        int[] d = new int[KEYS];
        for (int round = 0; round <= ROUNDS; round++) {
            int from = (ROUNDS - round) * 6;
            int to = round * 6;
            boolean isSwapped = round > 0 && round < ROUNDS;
            d[to] = inverse(z[from]);
            d[to + 1] = -z[from + (isSwapped ? 2 : 1)] & 0xffff;
            d[to + 2] = -z[from + (isSwapped ? 1 : 2)] & 0xffff;
            d[to + 3] = inverse(z[from + 3]);
            if (round < ROUNDS) {
                d[to + 4] = z[from - 2];
                d[to + 5] = z[from - 1];
            }
        }
        return d;
    }

    private static int times(int a, int b) {
        return (int) ((long) a * b % MODULUS) & 0xffff;
    }

    private static int word(byte[] bytes, int at) {
        return bytes[at] & 0xff | (bytes[at + 1] & 0xff) << 8;
    }

    private static void put(byte[] bytes, int at, int word) {
        bytes[at] = (byte) word;
        bytes[at + 1] = (byte) (word >> 8);
    }

    private static void cipher(byte[] from, byte[] to, int length, int[] key) {
        for (int at = 0; at < length; at += 8) {
            int x1 = word(from, at);
            int x2 = word(from, at + 2);
            int x3 = word(from, at + 4);
            int x4 = word(from, at + 6);
            int k = 0;
            for (int round = 0; round < ROUNDS; round++) {
                x1 = times(x1, key[k++]);
                x2 = x2 + key[k++] & 0xffff;
                x3 = x3 + key[k++] & 0xffff;
                x4 = times(x4, key[k++]);
                int t2 = times(x1 ^ x3, key[k++]);
                int t1 = times(t2 + (x2 ^ x4) & 0xffff, key[k++]);
                t2 = t1 + t2 & 0xffff;
                x1 ^= t1;
                x4 ^= t2;
                t2 ^= x2;
                x2 = x3 ^ t1;
                x3 = t2;
            }
            put(to, at, times(x1, key[k++]));
            put(to, at + 2, x3 + key[k++] & 0xffff);
            put(to, at + 4, x2 + key[k++] & 0xffff);
            put(to, at + 6, times(x4, key[k]));
        }
    }

    /** Whether the first block of the plain text has become what it must. */
    private static boolean isEncrypted(byte[] secret) {
        long first = 0;
        for (int i = 0; i < 8; i++) {
            first = first << 8 | secret[i] & 0xff;
        }
        return first == 0xb494a0ba72d2f77eL;
    }

    public static void main(String[] args) {
        int size = Jgf.start("Crypt", args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int n = SIZES[size];
        int block = Jgf.block(n, 8, world);
        int mine = Jgf.share(n, block, rank, world);
        int[] encryption = encryptionKeys();
        int[] decryption = decryptionKeys(encryption);
        byte[] plain = new byte[rank == 0 ? n : 0];
        for (int i = 0; i < plain.length; i++) {
            plain[i] = (byte) i;
        }
        byte[] decrypted = new byte[plain.length];
        byte[] text = new byte[block];
        byte[] secret = new byte[block];
        world.Barrier();
        long begin = System.nanoTime(); // MPJ Express counts whole seconds in Wtime
        if (rank == 0) {
            System.arraycopy(plain, 0, text, 0, mine);
            for (int k = 1; k < world.Size(); k++) {
                world.Ssend(plain, k * block, Jgf.share(n, block, k, world), MPI.BYTE, k, k);
            }
        } else {
            world.Recv(text, 0, mine, MPI.BYTE, 0, rank);
        }
        cipher(text, secret, mine, encryption);
        cipher(secret, text, mine, decryption);
        world.Barrier();
        if (rank == 0) {
            System.arraycopy(text, 0, decrypted, 0, mine);
            for (int k = 1; k < world.Size(); k++) {
                // Posted for a whole block, past the end for the last one.
                world.Recv(decrypted, k * block, block, MPI.BYTE, k, k);
            }
        } else {
            world.Ssend(text, 0, mine, MPI.BYTE, 0, rank);
        }
        world.Barrier();
        double seconds = (System.nanoTime() - begin) * 1e-9;
        int wrong = Arrays.mismatch(plain, decrypted);
        String failure = wrong >= 0 ? "byte " + wrong + " differs"
                : rank == 0 && !isEncrypted(secret) ? "the first block is encrypted in another way" : null;
        Jgf.end("Crypt", size, seconds, 2.0 * n / 1000, "Kbyte", failure);
    }
}
