package org.limosa.engine;

/** A grid of processes: ranks count along the last dimension first (MPI-5, section 8.5). */
public record Lattice(int[] dims, boolean[] periods) {
    /** The rank of a place outside. */
    public static final int OUTSIDE = -1;

    /** The number of places. */
    public int size() {
        int places = 1;
        for (int dim : dims) {
            places = Math.multiplyExact(places, dim);
        }
        return places;
    }

    /** The rank of a place; places beyond the edge of a periodic dimension are counted from the other edge. */
    public int rank(int[] coords) {
        int rank = 0;
        for (int i = 0; i < dims.length; i++) {
            int place = periods[i] ? Math.floorMod(coords[i], dims[i]) : coords[i];
            if (place < 0 || place >= dims[i]) {
                return OUTSIDE;
            }
            rank = rank * dims[i] + place;
        }
        return rank;
    }

    /** The place of a rank. */
    public int[] coords(int rank) {
        int[] coords = new int[dims.length];
        int rest = rank;
        for (int i = dims.length - 1; i >= 0; i--) {
            coords[i] = rest % dims[i];
            rest /= dims[i];
        }
        return coords;
    }

    /** The rank that is so many places away from another in a direction. */
    public int beside(int rank, int direction, int distance) {
        int[] coords = coords(rank);
        coords[direction] += distance;
        return rank(coords);
    }

    /**
     * These dims, with those that are 0 set so that the product is {@code places} and the grid is near to a cube; null
     * if there are none.
     */
    public static int[] complete(int places, int[] dims) {
        int rest = places;
        int free = 0;
        for (int dim : dims) {
            if (dim == 0) {
                free++;
            } else if (dim < 0 || places <= 0 || rest % dim != 0) {
                return null;
            } else {
                rest /= dim;
            }
        }
        if (places <= 0 || free == 0 && rest != 1) {
            return null;
        }
        int[] found = balanced(rest, free, rest);
        int[] all = dims.clone();
        int next = 0;
        for (int i = 0; i < all.length; i++) {
            if (all[i] == 0) {
                all[i] = found[next++];
            }
        }
        return all;
    }

    /**
     * Factors of n, none above {@code most}, in falling order, with the smallest first factor, and so on; null if there
     * are none.
     */
    private static int[] balanced(int n, int factors, int most) {
        if (factors == 0) {
            return n == 1 ? new int[0] : null;
        }
        for (int first = 1; first <= Math.min(n, most); first++) {
            if (n % first == 0 && Math.pow(first, factors) >= n - 0.5) {
                int[] rest = balanced(n / first, factors - 1, first);
                if (rest != null) {
                    int[] all = new int[factors];
                    all[0] = first;
                    System.arraycopy(rest, 0, all, 1, factors - 1);
                    return all;
                }
            }
        }
        return null;
    }
}
