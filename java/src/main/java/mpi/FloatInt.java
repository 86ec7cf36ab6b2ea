package mpi;

import java.nio.ByteBuffer;

/** A value and an index, for reductions with MINLOC and MAXLOC: items of {@link MPI#FLOAT_INT}. */
public final class FloatInt extends Pair {
    FloatInt() {
        super(4, 8);
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    @Override
    int compareValues(ByteBuffer a, int at, ByteBuffer b, int to) {
        return Float.compare(a.getFloat(at), b.getFloat(to));
    }

    /** Reads and writes an item. */
    public final class Data extends Struct.Data {
        private Data() {}

        /** The value. */
        public float getValue() {
            return getFloat(0);
        }

        /** The index. */
        public int getIndex() {
            return getInt(4);
        }

        /** Sets the value. */
        public void putValue(float value) {
            putFloat(0, value);
        }

        /** Sets the index. */
        public void putIndex(int index) {
            putInt(4, index);
        }
    }
}
