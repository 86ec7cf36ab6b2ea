package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Values of different types behind each other in a buffer of bytes, as in a struct of C: Open MPI's name for it. A
 * subclass adds its fields in the constructor, and reads and writes them by its own class of {@link Data}. Fields are
 * not aligned by themselves: see {@link #setOffset}.
 */
public abstract class Struct {
    private final List<Datatype> types = new ArrayList<>();
    private final List<Integer> counts = new ArrayList<>();
    private final List<Integer> offsets = new ArrayList<>();
    private int extent;
    private Datatype datatype;

    /** For a program's subclass. */
    protected Struct() {}

    /** Something that reads and writes the fields. */
    protected abstract Data newData();

    // --- fields ---

    private int add(int extentOfEach, int length, Datatype type, int blocks) {
        if (length < 0) {
            throw Errors.argument("Struct: a field of " + length + " elements; the length cannot be negative");
        }
        return put(Math.multiplyExact(extentOfEach, length), type, Math.multiplyExact(blocks, length));
    }

    private int put(int bytes, Datatype type, int count) {
        checkOpen();
        int offset = extent;
        types.add(type);
        counts.add(count);
        offsets.add(offset);
        extent = Math.addExact(extent, bytes);
        return offset;
    }

    private void checkOpen() {
        if (datatype != null) {
            throw Errors.argument("Struct: the type is in use, so no field can be added; add all in the constructor");
        }
    }

    /** Lets the next field begin so many bytes behind the beginning; this object. */
    public final Struct setOffset(int offset) {
        checkOpen();
        if (offset < extent) {
            throw Errors.argument("Struct.setOffset: the offset " + offset + " is inside of the fields, which have "
                    + extent + " bytes");
        }
        extent = offset;
        return this;
    }

    /** Adds a byte: where it is. */
    public final int addByte() {
        return addByte(1);
    }

    /** Adds bytes: where the first one is. */
    public final int addByte(int length) {
        return add(1, length, MPI.BYTE, 1);
    }

    /** Adds a char: where it is. */
    public final int addChar() {
        return addChar(1);
    }

    /** Adds chars: where the first one is. */
    public final int addChar(int length) {
        return add(2, length, MPI.BYTE, 2);
    }

    /** Adds a short: where it is. */
    public final int addShort() {
        return addShort(1);
    }

    /** Adds shorts: where the first one is. */
    public final int addShort(int length) {
        return add(2, length, MPI.BYTE, 2);
    }

    /** Adds an int: where it is. */
    public final int addInt() {
        return addInt(1);
    }

    /** Adds ints: where the first one is. */
    public final int addInt(int length) {
        return add(4, length, MPI.BYTE, 4);
    }

    /** Adds a long: where it is. */
    public final int addLong() {
        return addLong(1);
    }

    /** Adds longs: where the first one is. */
    public final int addLong(int length) {
        return add(8, length, MPI.BYTE, 8);
    }

    /** Adds a float: where it is. */
    public final int addFloat() {
        return addFloat(1);
    }

    /** Adds floats: where the first one is. */
    public final int addFloat(int length) {
        return add(4, length, MPI.BYTE, 4);
    }

    /** Adds a double: where it is. */
    public final int addDouble() {
        return addDouble(1);
    }

    /** Adds doubles: where the first one is. */
    public final int addDouble(int length) {
        return add(8, length, MPI.BYTE, 8);
    }
    /** Adds another struct: where it is. */
    public final int addStruct(Struct struct) throws MPIException {
        return addStruct(struct, 1);
    }

    /** Adds structs: where the first one is. */
    public final int addStruct(Struct struct, int length) throws MPIException {
        return add(struct.getExtent(), length, struct.getType(), 1);
    }

    /** Adds an item of a datatype: where it is. */
    public final int addData(Datatype type) throws MPIException {
        return addData(type, 1);
    }

    /** Adds items of a datatype: where the first one is. */
    public final int addData(Datatype type, int length) throws MPIException {
        Datatype bytes = type.inBytes();
        return add(bytes.extent(), length, bytes, 1);
    }

    // --- the type ---

    /** Bytes from one item to the next. */
    public final int getExtent() throws MPIException {
        return getType().extent();
    }

    /** The datatype, whose elements are bytes. No field can be added afterwards. */
    public final Datatype getType() throws MPIException {
        if (datatype == null) {
            types.addAll(List.of(MPI.LB, MPI.UB));
            counts.addAll(List.of(1, 1));
            offsets.addAll(List.of(0, extent));
            datatype = Datatype.Struct(
                    counts.stream().mapToInt(each -> each).toArray(), offsets.stream().mapToInt(each -> each).toArray(),
                    types.toArray(new Datatype[0]));
        }
        return datatype;
    }

    // --- access ---

    @SuppressWarnings("unchecked")
    private <T extends Data> T data(ByteBuffer buffer, int offset) {
        Data made = newData();
        made.buffer = buffer;
        made.offset = offset;
        return (T) made;
    }

    /** Access to the item at the beginning of a buffer. */
    public final <T extends Data> T getData(ByteBuffer buffer) throws MPIException {
        return getData(buffer, 0);
    }

    /** Access to an item of a buffer. */
    public final <T extends Data> T getData(ByteBuffer buffer, int index) throws MPIException {
        int offset = Math.multiplyExact(index, getExtent());
        if (buffer == null || index < 0 || offset > buffer.capacity() - getExtent()) {
            throw Errors.buffer("Struct.getData: item " + index + " of " + getExtent() + " bytes is outside of the "
                    + "buffer" + (buffer == null ? ", which is null" : ", which has " + buffer.capacity()));
        }
        return data(buffer, offset);
    }

    /** Access to the item at the beginning of an array. */
    public final <T extends Data> T getData(byte[] array) throws MPIException {
        return getData(array, 0);
    }

    /** Access to an item of an array. */
    public final <T extends Data> T getData(byte[] array, int index) throws MPIException {
        return getData(array == null ? null : ByteBuffer.wrap(array).order(ByteOrder.nativeOrder()), index);
    }

    /** Reads and writes the fields of an item in a buffer. */
    public abstract class Data {
        private ByteBuffer buffer;
        private int offset;

        /** For a program's subclass. */
        protected Data() {}

        /** The buffer from this item on. */
        public final ByteBuffer getBuffer() {
            return offset == 0 ? buffer : MPI.slice(buffer, offset);
        }

        /** Access to a struct that is a field. */
        protected final <D extends Data> D getData(Struct struct, int field) {
            return struct.data(buffer, offset + field);
        }

        /** Access to one of the structs that are a field. */
        protected final <D extends Data> D getData(Struct struct, int field, int index) {
            return struct.data(buffer, offset + field + index * struct.getExtent());
        }

        /** The bytes of a field. */
        protected final ByteBuffer getBuffer(Datatype type, int field) {
            return getBuffer(type, field, 0);
        }

        /** The bytes of one of the items of a field. */
        protected final ByteBuffer getBuffer(Datatype type, int field, int index) {
            int bytes = type.inBytes().extent();
            return buffer.slice(offset + field + index * bytes, bytes).order(buffer.order());
        }

        /** The byte of a field. */
        protected final byte getByte(int field) {
            return buffer.get(offset + field);
        }

        /** One of the bytes of a field. */
        protected final byte getByte(int field, int index) {
            return buffer.get(offset + field + 1 * index);
        }

        /** Sets the byte of a field. */
        protected final void putByte(int field, byte value) {
            buffer.put(offset + field, value);
        }

        /** Sets one of the bytes of a field. */
        protected final void putByte(int field, int index, byte value) {
            buffer.put(offset + field + 1 * index, value);
        }

        /** The char of a field. */
        protected final char getChar(int field) {
            return buffer.getChar(offset + field);
        }

        /** One of the chars of a field. */
        protected final char getChar(int field, int index) {
            return buffer.getChar(offset + field + 2 * index);
        }

        /** Sets the char of a field. */
        protected final void putChar(int field, char value) {
            buffer.putChar(offset + field, value);
        }

        /** Sets one of the chars of a field. */
        protected final void putChar(int field, int index, char value) {
            buffer.putChar(offset + field + 2 * index, value);
        }

        /** The short of a field. */
        protected final short getShort(int field) {
            return buffer.getShort(offset + field);
        }

        /** One of the shorts of a field. */
        protected final short getShort(int field, int index) {
            return buffer.getShort(offset + field + 2 * index);
        }

        /** Sets the short of a field. */
        protected final void putShort(int field, short value) {
            buffer.putShort(offset + field, value);
        }

        /** Sets one of the shorts of a field. */
        protected final void putShort(int field, int index, short value) {
            buffer.putShort(offset + field + 2 * index, value);
        }

        /** The int of a field. */
        protected final int getInt(int field) {
            return buffer.getInt(offset + field);
        }

        /** One of the ints of a field. */
        protected final int getInt(int field, int index) {
            return buffer.getInt(offset + field + 4 * index);
        }

        /** Sets the int of a field. */
        protected final void putInt(int field, int value) {
            buffer.putInt(offset + field, value);
        }

        /** Sets one of the ints of a field. */
        protected final void putInt(int field, int index, int value) {
            buffer.putInt(offset + field + 4 * index, value);
        }

        /** The long of a field. */
        protected final long getLong(int field) {
            return buffer.getLong(offset + field);
        }

        /** One of the longs of a field. */
        protected final long getLong(int field, int index) {
            return buffer.getLong(offset + field + 8 * index);
        }

        /** Sets the long of a field. */
        protected final void putLong(int field, long value) {
            buffer.putLong(offset + field, value);
        }

        /** Sets one of the longs of a field. */
        protected final void putLong(int field, int index, long value) {
            buffer.putLong(offset + field + 8 * index, value);
        }

        /** The float of a field. */
        protected final float getFloat(int field) {
            return buffer.getFloat(offset + field);
        }

        /** One of the floats of a field. */
        protected final float getFloat(int field, int index) {
            return buffer.getFloat(offset + field + 4 * index);
        }

        /** Sets the float of a field. */
        protected final void putFloat(int field, float value) {
            buffer.putFloat(offset + field, value);
        }

        /** Sets one of the floats of a field. */
        protected final void putFloat(int field, int index, float value) {
            buffer.putFloat(offset + field + 4 * index, value);
        }

        /** The double of a field. */
        protected final double getDouble(int field) {
            return buffer.getDouble(offset + field);
        }

        /** One of the doubles of a field. */
        protected final double getDouble(int field, int index) {
            return buffer.getDouble(offset + field + 8 * index);
        }

        /** Sets the double of a field. */
        protected final void putDouble(int field, double value) {
            buffer.putDouble(offset + field, value);
        }

        /** Sets one of the doubles of a field. */
        protected final void putDouble(int field, int index, double value) {
            buffer.putDouble(offset + field + 8 * index, value);
        }
    }
}
