package mpi;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A reduction that a program defines, in the form of Open MPI's bindings: one of both methods is enough. */
public abstract class UserFunction {
    /** For a program's subclass. */
    protected UserFunction() {}

    /** Sets every item of the array {@code inOutVec} to (item of {@code inVec}) op (item of {@code inOutVec}). */
    public void call(Object inVec, Object inOutVec, int count, Datatype datatype) throws MPIException {
        ByteBuffer in = bytes(inVec);
        ByteBuffer inOut = bytes(inOutVec);
        call(in, inOut, count, datatype);
        Layout.memory(inOutVec).copyFrom(MemorySegment.ofBuffer(inOut.clear()));
    }

    /** As above, for direct buffers. */
    public void call(ByteBuffer in, ByteBuffer inOut, int count, Datatype datatype) throws MPIException {
        throw Errors.op("a UserFunction must override call, for arrays or for direct buffers");
    }

    private static ByteBuffer bytes(Object array) {
        if (array instanceof boolean[] || array instanceof Object[] || !array.getClass().isArray()) {
            throw Errors.op("a UserFunction for direct buffers cannot combine elements of class "
                    + array.getClass().getTypeName());
        }
        MemorySegment elements = Layout.memory(array);
        ByteBuffer bytes = ByteBuffer.allocateDirect((int) elements.byteSize()).order(ByteOrder.nativeOrder());
        MemorySegment.ofBuffer(bytes).copyFrom(elements);
        return bytes;
    }

    /** The same in the form of mpiJava. */
    final User_function asUserFunction() {
        return new User_function() {
            @Override
            public void Call(Object in, int inOffset, Object inOut, int offset, int count, Datatype type) {
                if (inOffset == 0 && offset == 0) {
                    call(in, inOut, count, type);
                    return;
                }
                Object result = from(inOut, offset);
                call(from(in, inOffset), result, count, type);
                System.arraycopy(result, 0, inOut, offset, Array.getLength(result));
            }
        };
    }

    private static Object from(Object array, int offset) {
        int length = Array.getLength(array) - offset;
        Object part = Array.newInstance(array.getClass().getComponentType(), length);
        System.arraycopy(array, offset, part, 0, length);
        return part;
    }
}
