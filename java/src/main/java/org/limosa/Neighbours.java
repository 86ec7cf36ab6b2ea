package org.limosa;

/**
 * The ranks beside a rank of a {@link Grid} in one direction.
 *
 * @param before the rank with the next lower coordinate, or {@link Rank#NONE}
 * @param after the rank with the next higher coordinate, or {@link Rank#NONE}
 */
public record Neighbours(int before, int after) {}
