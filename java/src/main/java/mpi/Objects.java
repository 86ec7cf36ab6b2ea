package mpi;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import org.limosa.engine.Handover;
import org.limosa.engine.ObjectStream;

/**
 * Messages of objects: one stream of Java's serialisation holds the number of objects and all of them, so that shared
 * references stay shared.
 */
final class Objects {
    private Objects() {}

    /** The items of an array as bytes. */
    static byte[] write(String function, Object buffer, int offset, int count, Datatype type) {
        Layout.check(function, buffer, offset, count, type);
        Layout.checkRoom(function, buffer, offset, count, type);
        Object[] array = (Object[]) buffer;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream stream = new ObjectOutputStream(bytes)) {
            stream.writeInt(count * type.size());
            for (int i = 0; i < count * type.size(); i++) {
                stream.writeObject(array[place(i, offset, type)]);
            }
        } catch (NotSerializableException e) {
            throw Errors.type(function + ": objects of class " + e.getMessage()
                    + " cannot be sent; the class must implement java.io.Serializable");
        } catch (IOException e) {
            throw new MPIException(function + ": the objects cannot be serialised: " + e.getMessage(), e);
        }
        return bytes.toByteArray();
    }

    /** Puts the objects of a message into an array; their number. */
    static int read(String function, byte[] message, Object buffer, int offset, int count, Datatype type) {
        Object[] array = (Object[]) buffer;
        try (ObjectStream stream = new ObjectStream(message)) {
            int sent = stream.readInt();
            checkRoom(function, sent, buffer, offset, count, type);
            for (int i = 0; i < sent; i++) {
                put(function, stream.readObject(), i, array, offset, type);
            }
            return sent;
        } catch (IOException | ClassNotFoundException e) {
            throw new MPIException(function + ": the objects of a message cannot be read: " + e, e);
        }
    }

    /** The items of an array as they are handed over to a rank of the same Java machine; null if they cannot be. */
    static Object[] handedOver(String function, Object buffer, int offset, int count, Datatype type) {
        Layout.check(function, buffer, offset, count, type);
        Layout.checkRoom(function, buffer, offset, count, type);
        Object[] array = (Object[]) buffer;
        Object[] items = new Object[count * type.size()];
        for (int i = 0; i < items.length; i++) {
            items[i] = array[place(i, offset, type)];
        }
        return Handover.of(items);
    }

    /** Puts what has been handed over into an array; the number of objects. */
    static int accept(String function, Object[] items, Object buffer, int offset, int count, Datatype type) {
        checkRoom(function, items.length, buffer, offset, count, type);
        for (int i = 0; i < items.length; i++) {
            put(function, items[i], i, (Object[]) buffer, offset, type);
        }
        return items.length;
    }

    private static void checkRoom(String function, int sent, Object buffer, int offset, int count, Datatype type) {
        long room = (long) count * type.size();
        if (sent > room) {
            throw Errors.truncated(function + ": the message holds " + sent + " objects, but there is room for " + room);
        }
        Layout.checkRoom(function, buffer, offset, (sent + type.size() - 1) / Math.max(1, type.size()), type);
    }

    /** Where an object of an array is, by its number in a message. */
    private static int place(int number, int offset, Datatype type) {
        return offset + number / type.size() * type.extent() + type.place(number % type.size());
    }

    private static void put(String function, Object value, int number, Object[] array, int offset, Datatype type) {
        try {
            array[place(number, offset, type)] = value;
        } catch (ArrayStoreException e) {
            throw Errors.type(function + ": an object of class " + value.getClass().getTypeName()
                    + " has come, but the buffer is of class " + array.getClass().getTypeName());
        }
    }
}
