import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import mpi.*;

/** Open MPI's structs in buffers of bytes, pairs of a value and an index, and complex numbers. */
public class OpenMpiStructs {
    static Intracomm world;
    static int rank;
    static int size;
    static int next;
    static int previous;

    /** A particle: an int, three doubles aligned as in C, and a pair. */
    static final class Particle extends Struct {
        final int id = addInt();
        final int place = setOffset(8).addDouble(3);
        final int pair = addStruct(MPI.doubleInt, 2);
        final int tail = addData(MPI.SHORT2);

        @Override
        protected Data newData() {
            return new Data();
        }

        final class Data extends Struct.Data {
            void set(int number, double shift) {
                putInt(id, number);
                for (int i = 0; i < 3; i++) {
                    putDouble(place, i, shift + i);
                }
                DoubleInt.Data second = getData(MPI.doubleInt, pair, 1);
                second.putValue(-shift);
                second.putIndex(number);
                getBuffer(MPI.SHORT2, tail).putShort(2, (short) number);
            }

            void check(int number, double shift) {
                Check.same(number, getInt(id), "id");
                Check.same(shift + 2, getDouble(place, 2), "place");
                DoubleInt.Data second = getData(MPI.doubleInt, pair, 1);
                Check.same(-shift, second.getValue(), "value of a pair");
                Check.same(number, second.getIndex(), "index of a pair");
                Check.same((short) number, getBuffer(MPI.SHORT2, tail).getShort(2), "data of a type");
            }
        }
    }

    static void structs() throws MPIException {
        Particle type = new Particle();
        Check.same(8 + 24 + 32 + 4, type.getExtent(), "extent");
        Check.fails(type::addInt, "in use");
        ByteBuffer sent = MPI.newByteBuffer(3 * type.getExtent());
        byte[] got = new byte[3 * type.getExtent()];
        for (int i = 0; i < 3; i++) {
            type.<Particle.Data>getData(sent, i).set(10 * rank + i, 0.5 * i);
        }
        Request request = world.iSend(sent, 3, type.getType(), next, 1);
        Status status = world.recv(got, 3, type.getType(), previous, 1);
        request.waitFor();
        Check.same(3, status.getCount(type.getType()), "items");
        for (int i = 0; i < 3; i++) {
            type.<Particle.Data>getData(got, i).check(10 * previous + i, 0.5 * i);
        }
        Particle.Data second = type.getData(sent, 1);
        world.sendRecv(
                second.getBuffer(), 1, type.getType(), next, 2, got, 1, type.getType(), previous, 2);
        type.<Particle.Data>getData(got).check(10 * previous + 1, 0.5);
        Check.fails(() -> type.getData(got, 3), "item 3");
        Check.fails(() -> type.getData((byte[]) null), "null");
        Check.fails(() -> new Particle().setOffset(3), "offset 3");
        Check.fails(() -> new Particle().addInt(-1), "-1 elements");
        Check.fails(() -> new Particle().addData(MPI.OBJECT), "MPI.OBJECT");
    }

    /** A byte and a double with a gap between them. */
    static void createStruct() throws MPIException {
        Datatype type = Datatype.createStruct(
                new int[] {1, 1}, new int[] {0, 8}, new Datatype[] {MPI.BYTE, MPI.DOUBLE});
        ByteBuffer sent = MPI.newByteBuffer(32);
        sent.put(0, (byte) 5).putDouble(8, 1.5).put(16, (byte) 6).putDouble(24, 2.5).put(17, (byte) 99);
        ByteBuffer got = MPI.newByteBuffer(32);
        world.sendRecv(sent, 2, type, next, 3, got, 2, type, previous, 3);
        Check.same((byte) 6, got.get(16), "a byte");
        Check.same(2.5, got.getDouble(24), "a double");
        Check.same((byte) 0, got.get(17), "the gap");
        Check.fails(() -> Datatype.createStruct(new int[1], new int[1], new Datatype[] {MPI.OBJECT}), "MPI.OBJECT");
    }

    static void pairs() throws MPIException {
        ByteBuffer in = MPI.newByteBuffer(32);
        ByteBuffer out = MPI.newByteBuffer(32);
        int last = size - 1;
        Int2.Data two = MPI.int2.getData(in);
        two.putValue(-rank);
        two.putIndex(rank);
        world.allReduce(in, out, 1, MPI.INT2, MPI.MINLOC);
        two = MPI.int2.getData(out);
        Check.same(-last + " " + last, two.getValue() + " " + two.getIndex(), "INT2");
        for (int i = 0; i < 2; i++) {
            DoubleInt.Data pair = MPI.doubleInt.getData(in, i);
            pair.putValue(i == 0 ? 0.5 * rank : 3);
            pair.putIndex(rank);
        }
        world.reduce(in, out, 2, MPI.DOUBLE_INT, MPI.MAXLOC, last);
        if (rank == last) {
            DoubleInt.Data most = MPI.doubleInt.getData(out);
            Check.same(0.5 * last + " " + last, most.getValue() + " " + most.getIndex(), "DOUBLE_INT");
            most = MPI.doubleInt.getData(out, 1);
            Check.same("3.0 0", most.getValue() + " " + most.getIndex(), "the lowest index of equal values");
        }
        ShortInt.Data small = MPI.shortInt.getData(in);
        small.putValue((short) (rank - 5));
        small.putIndex(rank);
        world.allReduce(in, out, 1, MPI.SHORT_INT, MPI.MINLOC);
        small = MPI.shortInt.getData(out);
        Check.same("-5 0", small.getValue() + " " + small.getIndex(), "SHORT_INT");
        FloatInt.Data real = MPI.floatInt.getData(in);
        real.putValue(0.25f * rank);
        real.putIndex(rank);
        world.allReduce(in, out, 1, MPI.FLOAT_INT, MPI.MAXLOC);
        real = MPI.floatInt.getData(out);
        Check.same(0.25f * last + " " + last, real.getValue() + " " + real.getIndex(), "FLOAT_INT");
        byte[] array = new byte[16];
        byte[] result = new byte[16];
        LongInt.Data large = MPI.longInt.getData(array);
        large.putValue(1L << 40 | rank);
        large.putIndex(rank);
        world.allReduce(array, result, 1, MPI.LONG_INT, MPI.MAXLOC);
        large = MPI.longInt.getData(result);
        Check.same((1L << 40 | last) + " " + last, large.getValue() + " " + large.getIndex(), "LONG_INT");
        Check.fails(
                () -> world.allReduce(array, result, 1, MPI.FLOAT_COMPLEX, MPI.MAXLOC), "MPI.MAXLOC are not defined");
    }

    static void complex() throws MPIException {
        double[] in = new double[4];
        DoubleBuffer out = MPI.newDoubleBuffer(4);
        DoubleComplex number = DoubleComplex.get(in, 1);
        number.putReal(rank);
        number.putImag(-1);
        world.allReduce(in, out, 2, MPI.DOUBLE_COMPLEX, MPI.SUM);
        DoubleComplex sum = DoubleComplex.get(out, 1);
        Check.same(size * (size - 1) / 2.0, sum.getReal(), "real part");
        Check.same(-1.0 * size, sum.getImag(), "imaginary part");
        Check.same(-1.0 * size, sum.getBuffer().get(1), "buffer");
        ByteBuffer bytes = MPI.newByteBuffer(16);
        FloatComplex.get(bytes, 1).putImag(2.5f);
        Check.same(2.5f, bytes.getFloat(12), "in a buffer of bytes");
        Check.fails(() -> world.allReduce(in, out, 2, MPI.DOUBLE_COMPLEX, MPI.PROD), "MPI.PROD is not defined");
        Check.fails(() -> DoubleComplex.get(in, 2), "no number 2");
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.getRank();
        size = world.getSize();
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        structs();
        createStruct();
        pairs();
        complex();
        Check.end();
    }
}
