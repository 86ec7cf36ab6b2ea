package org.limosa.engine;

import java.util.Arrays;

/**
 * The arguments of programs for MPJ Express, whose launcher puts a rank, a configuration and a device before the
 * program's own: {@code limosa run --dialect mpj}. Programs take what Init returns, or count from args[3].
 */
public final class Arguments {
    private static final String CHOSEN = "LIMOSA_DIALECT";
    private static final String MPJ_EXPRESS = "mpj";
    private static final String DEVICE = "limosa";
    private static final int LEADING = 3;

    private Arguments() {}

    /** Whether programs are for MPJ Express. */
    public static boolean isMpjExpress() {
        return MPJ_EXPRESS.equals(System.getenv(CHOSEN));
    }

    /** What the method main of a rank is given. */
    public static String[] given(String[] own, int rank, int ranks) {
        if (!isMpjExpress()) {
            return own;
        }
        String[] all = new String[LEADING + own.length];
        all[0] = Integer.toString(rank);
        all[1] = Integer.toString(ranks);
        all[2] = DEVICE;
        System.arraycopy(own, 0, all, LEADING, own.length);
        return all;
    }

    /** The program's own arguments. */
    public static String[] own(String[] args) {
        boolean leads = isMpjExpress() && args.length >= LEADING && args[2].equals(DEVICE);
        return leads ? Arrays.copyOfRange(args, LEADING, args.length) : args;
    }
}
