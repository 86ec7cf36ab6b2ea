package org.limosa.engine.local;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Lists of ranks and times, as people write them. */
final class Words {
    private static final double SHORT = 10;
    private static final double MINUTES = 120;
    private static final double HOURS = 7200;

    private Words() {}

    /** Ranks in ascending order: {@code ranks 0-2, 5}. */
    static String ranks(List<Integer> ranks) {
        List<String> parts = new ArrayList<>();
        for (int begin = 0, end; begin < ranks.size(); begin = end) {
            end = begin + 1;
            while (end < ranks.size() && ranks.get(end) == ranks.get(begin) + end - begin) {
                end++;
            }
            int first = ranks.get(begin);
            int last = ranks.get(end - 1);
            parts.add(first == last ? "" + first : last == first + 1 ? first + ", " + last : first + "-" + last);
        }
        return (ranks.size() == 1 ? "rank " : "ranks ") + String.join(", ", parts);
    }

    /** {@code one} for one rank, otherwise {@code many}. */
    static String verb(List<Integer> ranks, String one, String many) {
        return ranks.size() == 1 ? one : many;
    }

    /** A time: {@code 0.4 s}, {@code 75 s}, {@code 12 min}, {@code 3.0 h}. */
    static String duration(double seconds) {
        if (seconds < SHORT) {
            return String.format(Locale.ROOT, "%.1f s", seconds);
        }
        if (seconds < MINUTES) {
            return String.format(Locale.ROOT, "%.0f s", seconds);
        }
        return seconds < HOURS ? String.format(Locale.ROOT, "%.0f min", seconds / 60)
                : String.format(Locale.ROOT, "%.1f h", seconds / 3600);
    }
}
