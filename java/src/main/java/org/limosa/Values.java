package org.limosa;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.ObjectStream;
import org.limosa.engine.Type;

/**
 * Conversion of values to bytes and back. The first byte says what they are: {@link #OBJECT}, an object by Java's
 * serialisation, or the number of the type of an array's elements, which follow.
 */
final class Values {
    private static final byte OBJECT = -1;

    private Values() {}

    static byte[] write(Object value) {
        if (value == null) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the value is null");
        }
        if (value.getClass().isArray() && Elements.of(value) instanceof Elements elements) {
            byte[] bytes = new byte[Math.toIntExact(1 + elements.memory().byteSize())];
            bytes[0] = (byte) elements.type().ordinal();
            MemorySegment.copy(elements.memory(), 0, MemorySegment.ofArray(bytes), 1, bytes.length - 1);
            return bytes;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(OBJECT);
        try (ObjectOutputStream stream = new ObjectOutputStream(bytes)) {
            stream.writeObject(value);
        } catch (NotSerializableException e) {
            throw MPIException.of(Abi.MPI_ERR_TYPE, "objects of class " + e.getMessage()
                    + " cannot be sent; the class must implement java.io.Serializable");
        } catch (IOException e) {
            throw new MPIException("the value cannot be serialised: " + e.getMessage(), e);
        }
        return bytes.toByteArray();
    }

    static Object read(byte[] message) {
        if (message[0] != OBJECT) {
            Type type = Type.values()[message[0]];
            Object array = Elements.allocate(type, (message.length - 1) / type.bytes);
            Elements elements = Elements.of(array);
            MemorySegment.copy(MemorySegment.ofArray(message), 1, elements.memory(), 0, message.length - 1);
            elements.finish();
            return array;
        }
        try (ObjectStream stream = new ObjectStream(Arrays.copyOfRange(message, 1, message.length))) {
            return stream.readObject();
        } catch (IOException | ClassNotFoundException e) {
            throw new MPIException("the value that has come cannot be read: " + e, e);
        }
    }
}
