package org.limosa;

/**
 * A message that has come.
 *
 * @param value the value, or the buffer into which it was received; null if it came from {@link Rank#NONE}
 * @param source the rank that has sent it
 * @param tag its tag
 * @param count the number of elements of an array or buffer, {@link Integer#MAX_VALUE} for more; 1 for other values, 0
 *     from {@link Rank#NONE}
 * @param <T> the class of the value
 */
public record Received<T>(T value, int source, int tag, int count) {
    static <T> Received<T> nothing(T value) {
        return new Received<>(value, Rank.NONE, Tag.ANY, 0);
    }
}
