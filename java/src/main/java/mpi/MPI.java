package mpi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.limosa.abi.Abi;
import org.limosa.engine.Arguments;
import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Engines;
import org.limosa.engine.ObjectSends;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/**
 * Starts and ends message passing, and holds the constants: the interface of mpiJava 1.2 and MPJ Express.
 *
 * <p>Methods that fail throw {@link MPIException}. One that no program catches ends the whole job.
 */
public final class MPI extends OpenMpiNames {
    public static final int ANY_SOURCE = Communicator.ANY;
    public static final int ANY_TAG = Communicator.ANY;
    public static final int PROC_NULL = -3;
    /** The root of a collective operation between two groups, which it gives itself. */
    public static final int ROOT = -4;
    public static final int UNDEFINED = -32766;
    public static final int IDENT = 0;
    public static final int SIMILAR = 1;
    public static final int UNEQUAL = 2;
    public static final int CONGRUENT = 3;
    public static final int GRAPH = 1;
    public static final int CART = 2;
    public static final int TAG_UB = 501;
    public static final int IO = 502;
    public static final int HOST = 503;
    public static final int THREAD_SINGLE = 1;
    public static final int THREAD_FUNNELED = 2;
    public static final int THREAD_SERIALIZED = 3;
    public static final int THREAD_MULTIPLE = 4;
    public static final int SEND_OVERHEAD = 0;
    public static final int RECV_OVERHEAD = 0;
    public static final boolean DEBUG = false;

    public static final Datatype BYTE = new Datatype(Type.BYTE, "MPI.BYTE");
    public static final Datatype CHAR = new Datatype(Type.CHAR, "MPI.CHAR");
    public static final Datatype SHORT = new Datatype(Type.SHORT, "MPI.SHORT");
    public static final Datatype BOOLEAN = new Datatype(Type.BOOLEAN, "MPI.BOOLEAN");
    public static final Datatype INT = new Datatype(Type.INT, "MPI.INT");
    public static final Datatype LONG = new Datatype(Type.LONG, "MPI.LONG");
    public static final Datatype FLOAT = new Datatype(Type.FLOAT, "MPI.FLOAT");
    public static final Datatype DOUBLE = new Datatype(Type.DOUBLE, "MPI.DOUBLE");
    public static final Datatype PACKED = new Datatype(Type.PACKED, "MPI.PACKED");
    public static final Datatype OBJECT = new Datatype(null, "MPI.OBJECT");
    public static final Datatype LB = Datatype.bound(true);
    public static final Datatype UB = Datatype.bound(false);
    public static final Datatype NULL = null;
    public static final Datatype SHORT2 = Datatype.Contiguous(2, SHORT);
    public static final Datatype INT2 = Datatype.Contiguous(2, INT);
    public static final Datatype LONG2 = Datatype.Contiguous(2, LONG);
    public static final Datatype FLOAT2 = Datatype.Contiguous(2, FLOAT);
    public static final Datatype DOUBLE2 = Datatype.Contiguous(2, DOUBLE);

    /** Open MPI's access to pairs in buffers of bytes, and their datatypes. */
    public static final Int2 int2 = new Int2();
    /** As {@link #int2}. */
    public static final ShortInt shortInt = new ShortInt();
    /** As {@link #int2}. */
    public static final LongInt longInt = new LongInt();
    /** As {@link #int2}. */
    public static final FloatInt floatInt = new FloatInt();
    /** As {@link #int2}. */
    public static final DoubleInt doubleInt = new DoubleInt();
    public static final Datatype SHORT_INT = shortInt.getType();
    public static final Datatype LONG_INT = longInt.getType();
    public static final Datatype FLOAT_INT = floatInt.getType();
    public static final Datatype DOUBLE_INT = doubleInt.getType();
    public static final Datatype FLOAT_COMPLEX = Datatype.Contiguous(2, FLOAT);
    public static final Datatype DOUBLE_COMPLEX = Datatype.Contiguous(2, DOUBLE);

    public static final Op MAX = new Op(Reduction.MAX, null, true, "MPI.MAX");
    public static final Op MIN = new Op(Reduction.MIN, null, true, "MPI.MIN");
    public static final Op SUM = new Op(Reduction.SUM, null, true, "MPI.SUM");
    public static final Op PROD = new Op(Reduction.PROD, null, true, "MPI.PROD");
    public static final Op LAND = new Op(Reduction.LAND, null, true, "MPI.LAND");
    public static final Op BAND = new Op(Reduction.BAND, null, true, "MPI.BAND");
    public static final Op LOR = new Op(Reduction.LOR, null, true, "MPI.LOR");
    public static final Op BOR = new Op(Reduction.BOR, null, true, "MPI.BOR");
    public static final Op LXOR = new Op(Reduction.LXOR, null, true, "MPI.LXOR");
    public static final Op BXOR = new Op(Reduction.BXOR, null, true, "MPI.BXOR");
    public static final Op MINLOC = Op.located(false);
    public static final Op MAXLOC = Op.located(true);

    /** Open MPI's operation of windows that takes the new value. */
    public static final Op REPLACE = new Op(null, null, false, "MPI.REPLACE");
    /** Open MPI's operation of windows that changes nothing. */
    public static final Op NO_OP = new Op(null, null, false, "MPI.NO_OP");
    public static final int LOCK_EXCLUSIVE = Abi.MPI_LOCK_EXCLUSIVE;
    public static final int LOCK_SHARED = Abi.MPI_LOCK_SHARED;
    public static final int MODE_NOCHECK = Abi.MPI_MODE_NOCHECK;
    public static final int MODE_NOPRECEDE = Abi.MPI_MODE_NOPRECEDE;
    public static final int MODE_NOPUT = Abi.MPI_MODE_NOPUT;
    public static final int MODE_NOSTORE = Abi.MPI_MODE_NOSTORE;
    public static final int MODE_NOSUCCEED = Abi.MPI_MODE_NOSUCCEED;

    public static final Errhandler ERRORS_ARE_FATAL = new Errhandler(Errhandler.FATAL);
    public static final Errhandler ERRORS_RETURN = new Errhandler(Errhandler.RETURN);
    public static final Request REQUEST_NULL = new Request(null);
    public static final Status EMPTY_STATUS = new Status();
    public static final int BSEND_OVERHEAD = 512;

    /** All processes of the job; null before Init. */
    public static Intracomm COMM_WORLD;
    /** The calling process. */
    public static Intracomm COMM_SELF;
    public static final Comm COMM_NULL = null;
    public static Group GROUP_EMPTY;
    public static final Group GROUP_NULL = null;
    /** Open MPI's name for no hints. */
    public static final Info INFO_NULL = Info.none();
    /** Open MPI's name for {@link #NULL}. */
    public static final Datatype DATATYPE_NULL = null;
    /** The number of processes of the job. */
    public static int NUM_OF_PROCESSORS;

    static final ObjectSends OBJECTS = new ObjectSends();
    static final EagerSends EAGER = new EagerSends();

    private static Engine engine;
    private static boolean ended;
    private static Thread mainThread;
    private static int largestTag;
    private static Object attached;

    private MPI() {}

    static Engine engine() {
        if (engine == null) {
            throw Errors.other("MPI.Init has not been called, or MPI.Finalize has");
        }
        return engine;
    }

    static int TAG_UB() {
        return largestTag;
    }

    /** Starts message passing, also after Finalize; the arguments that are the program's own. */
    public static String[] Init(String[] args) throws MPIException {
        if (engine != null) {
            throw Errors.other("MPI.Init was called before");
        }
        engine = Engines.start(MPI.class);
        ended = false;
        mainThread = Thread.currentThread();
        COMM_WORLD = new Intracomm(engine.world());
        COMM_SELF = new Intracomm(engine.self());
        GROUP_EMPTY = new Group(engine.nobody());
        NUM_OF_PROCESSORS = COMM_WORLD.Size();
        largestTag = engine.largestTag();
        return Arguments.own(args == null ? new String[0] : args);
    }

    /** As {@link #Init}; all threads may use message passing. */
    public static String[] initThread(int required, int provided, String[] argv) throws MPIException {
        return Init(argv);
    }

    public static int queryThread() throws MPIException {
        return THREAD_MULTIPLE;
    }

    public static boolean isMainThread() throws MPIException {
        return Thread.currentThread() == mainThread;
    }

    /** Completes all messages. No method but Wtime and Initialized can be called afterwards. */
    public static void Finalize() throws MPIException {
        Engine ending = engine();
        Buffer_detach();
        OBJECTS.finish();
        EAGER.finish();
        ending.close();
        engine = null;
        ended = true;
        COMM_WORLD = null;
        COMM_SELF = null;
    }

    static boolean hasEnded() {
        return ended;
    }

    static void abort(Comm comm, int code) {
        System.out.flush();
        System.err.flush();
        engine().abort(comm.communicator(), code);
    }

    /** Seconds since some time in the past, with the resolution of nanoseconds. */
    public static double Wtime() throws MPIException {
        return System.nanoTime() * 1e-9;
    }

    /** The resolution of {@link #Wtime}. */
    public static double Wtick() throws MPIException {
        return 1e-9;
    }

    public static String Get_processor_name() throws MPIException {
        return engine().processorName();
    }

    public static boolean Initialized() throws MPIException {
        return engine != null;
    }

    /** Room for messages in buffered mode. */
    public static void Buffer_attach(byte[] buffer) throws MPIException {
        attach(buffer, buffer == null ? 0 : buffer.length);
    }

    /** Room for messages in buffered mode. */
    public static void Buffer_attach(ByteBuffer buffer) throws MPIException {
        attach(buffer, buffer == null ? 0 : buffer.capacity());
    }

    private static void attach(Object buffer, int bytes) {
        Engine now = engine();
        if (buffer == null) {
            throw Errors.buffer("Buffer_attach: the buffer is null");
        }
        if (attached != null) {
            throw Errors.buffer("Buffer_attach: a buffer is attached already; detach it first");
        }
        MemorySegment memory = Arena.ofAuto().allocate(Math.max(1, bytes), 16);
        now.attachBuffer(memory);
        attached = new Object[] {buffer, memory};
    }

    /** Waits until the messages in the buffer have left; the buffer, or null if there was none. */
    public static byte[] Buffer_detach() throws MPIException {
        return detach() instanceof byte[] bytes ? bytes : null;
    }

    static boolean isBufferAttached() {
        return attached != null;
    }

    /** What was attached. */
    static Object detach() {
        Engine now = engine();
        if (attached == null) {
            return null;
        }
        now.detachBuffer();
        Object buffer = ((Object[]) attached)[0];
        attached = null;
        return buffer;
    }

    public static void Errorhandler_set(Errhandler handler) throws MPIException {
        engine();
    }

    public static Errhandler Errorhandler_get() throws MPIException {
        return ERRORS_ARE_FATAL;
    }
}
