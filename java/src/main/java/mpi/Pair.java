package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.stream.Stream;

/** A value and an index behind it, as bytes. */
abstract sealed class Pair extends Struct permits Int2, ShortInt, LongInt, FloatInt, DoubleInt {
    private final int index;

    Pair(int index, int extent) {
        this.index = index;
        addByte(index);
        addInt();
        setOffset(extent);
    }

    /** The pair that a datatype stands for; null for other datatypes. */
    static Pair of(Datatype type) {
        return Stream.of(MPI.int2, MPI.shortInt, MPI.longInt, MPI.floatInt, MPI.doubleInt)
                .filter(each -> each.getType() == type).findFirst().orElse(null);
    }

    /** Compares the values of two items. */
    abstract int compareValues(ByteBuffer a, int at, ByteBuffer b, int to);

    /** Leaves of each two items the one with the larger value, or the smaller; of equal values the smaller index. */
    final void combine(byte[] in, int at, byte[] inout, int to, int count, boolean largest) {
        ByteBuffer a = ByteBuffer.wrap(in).order(ByteOrder.nativeOrder());
        ByteBuffer b = ByteBuffer.wrap(inout).order(ByteOrder.nativeOrder());
        for (int i = 0; i < count; i++) {
            int p = at + i * getExtent();
            int q = to + i * getExtent();
            int order = compareValues(a, p, b, q);
            boolean wins = order == 0 ? a.getInt(p + index) < b.getInt(q + index) : order > 0 == largest;
            if (wins) {
                System.arraycopy(in, p, inout, q, getExtent());
            }
        }
    }
}
