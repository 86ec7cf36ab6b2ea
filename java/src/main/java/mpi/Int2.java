package mpi;

import java.nio.ByteBuffer;

/** A value and an index, for reductions with MINLOC and MAXLOC: items of {@link MPI#INT2}. */
public final class Int2 extends Pair {
    Int2() {
        super(4, 8);
    }

    @Override
    protected Data newData() {
        return new Data();
    }

    @Override
    int compareValues(ByteBuffer a, int at, ByteBuffer b, int to) {
        return Integer.compare(a.getInt(at), b.getInt(to));
    }

    /** Reads and writes an item. */
    public final class Data extends Struct.Data {
        private Data() {}

        /** The value. */
        public int getValue() {
            return getInt(0);
        }

        /** The index. */
        public int getIndex() {
            return getInt(4);
        }

        /** Sets the value. */
        public void putValue(int value) {
            putInt(0, value);
        }

        /** Sets the index. */
        public void putIndex(int index) {
            putInt(4, index);
        }
    }
}
