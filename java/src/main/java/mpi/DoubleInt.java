package mpi;

import java.nio.ByteBuffer;

/** A value and an index, for reductions with MINLOC and MAXLOC: items of {@link MPI#DOUBLE_INT}. */
public final class DoubleInt extends Pair {
    DoubleInt() {
        super(8, 16);
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    @Override
    int compareValues(ByteBuffer a, int at, ByteBuffer b, int to) {
        return Double.compare(a.getDouble(at), b.getDouble(to));
    }

    /** Reads and writes an item. */
    public final class Data extends Struct.Data {
        private Data() {}

        /** The value. */
        public double getValue() {
            return getDouble(0);
        }

        /** The index. */
        public int getIndex() {
            return getInt(8);
        }

        /** Sets the value. */
        public void putValue(double value) {
            putDouble(0, value);
        }

        /** Sets the index. */
        public void putIndex(int index) {
            putInt(8, index);
        }
    }
}
